// One turn of a chat, whichever API asked for it: messages and tools go in, parts of an answer come
// out. The endpoints translate their bodies into a ChatRequest and the deltas into their events.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/generation.h"
#include "serve/openai.h"
#include "text/chat_delta.h"

namespace sluice {

enum class ToolChoice { kAuto, kNone, kRequired, kNamed };

/// The form of an answer's text.
struct AnswerFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema, kRegex, kLark } kind = Kind::kText;
  OrderedJson schema;   // kJsonSchema
  std::string grammar;  // kRegex, kLark
  std::string param;    // the request's field, for errors
};

struct ChatRequest {
  /// As read_messages() returns them.
  OrderedJson messages = OrderedJson::array();
  std::vector<ChatTool> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string named_tool;                  // kNamed
  std::vector<std::string> allowed_tools;  // that may be called; empty: all
  bool parallel_calls = true;
  int64_t max_calls = INT64_MAX;  // then the answer ends
  AnswerFormat format;
  /// none, minimal, low, medium, high, xhigh or max; unset: the model's default.
  std::optional<std::string> effort;
  OrderedJson template_variables = OrderedJson::object();  // on top of the model's own
  GenerationRequest generation;                            // all but the prompt and the limit
  int64_t max_tokens = -1;                                 // -1: the model's default
  std::string messages_param = "messages";                 // for errors: "messages", "input"
};

enum class ChatFinish { kNone, kStop, kLength, kToolCalls };

struct ChatPiece {
  int choice = 0;
  std::vector<ChatDelta> deltas;
  std::vector<ScoredToken> scores;        // of the tokens behind the deltas, if asked for
  ChatFinish finish = ChatFinish::kNone;  // with the choice's last piece
  std::string stop;                       // the stop text that ended it, if one did
};

struct ChatUsage : Usage {
  int64_t reasoning_tokens = 0;
};

struct ChatSinks {
  /// Nothing is wrong with the request: called before start_chat() returns and before the others.
  std::function<void(int64_t n_prompt_tokens)> accepted;
  std::function<void(ChatPiece)> piece;  // in order within a choice
  /// After the last piece of the last choice; `error` is empty if all went well. Never called after
  /// a cancel.
  std::function<void(const GenerationError& error, const ChatUsage& usage)> done;
};

/// Fills what chats need to know of a model: call when all else of it is set. `template_text` is
/// the source of its chat template.
void prepare_chat(ServedModel& model, std::string_view template_text);

/// The tokens of the prompt that a request stands for. Throws ApiError.
std::vector<Token> chat_prompt(const ChatRequest& request, const ServedModel& model);
/// Whether these are at most `limit`, which is within the context.
bool prompt_fits(const ChatRequest& request, const ServedModel& model, int64_t limit);

/// Starts the answer; everything wrong with the request is thrown as ApiError before. `piece` and
/// `done` are called on the engine's thread. The caller cancels what start_chat() returns when its
/// client goes (see cancel_with_client()).
std::shared_ptr<Generation> start_chat(const ServedModel& model, ChatRequest request,
                                       ChatSinks sinks);

}  // namespace sluice
