// What the model is still shown of a conversation that has grown long.
#pragma once

#include <string>

#include "base/json.h"
#include "serve/chat.h"
#include "serve/response_request.h"

namespace sluice {

/// Leaves out the oldest messages until the prompt fits with room for an answer. Throws ApiError.
void truncate_messages(ChatRequest& chat, const ServedModel& model);

/// Tokens of the longest prompt that leaves room for its summary and an answer.
int64_t compaction_limit(const ServedModel& model);

/// How many messages at the end wait for an answer: the user's words, or the outputs of calls and
/// the message that made these. All, if nothing before them was answered.
size_t n_unanswered(const OrderedJson& messages);

/// Asks for a summary of `chat` without its last `n_unanswered` messages.
ChatRequest summary_request(const ChatRequest& chat, size_t n_unanswered, const ServedModel& model);

/// The item that stands for all of the conversation from then on, but for its instructions: it
/// keeps developers' words, as many of the user's as fit, the summary, and what is unanswered.
OrderedJson compaction_item(const Compaction& compaction, const std::string& summary,
                            const ServedModel& model);

}  // namespace sluice
