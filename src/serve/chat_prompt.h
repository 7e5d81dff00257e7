// The prompt of a chat request: messages and tools through the model's template.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serve/chat.h"

namespace sluice {

/// The messages of a chat completion as templates want them: contents are texts, developers are
/// systems, arguments of calls are texts. `param` is the array's name in errors. Throws ApiError.
OrderedJson read_messages(const OrderedJson& messages, const std::string& param = "messages");

struct RenderedChat {
  std::vector<Token> tokens;
  bool thinking = false;  // the template has opened the model's thinking
};
/// The prompt that a request stands for. Arguments of calls are written as they were sent wherever
/// the template lets them through. Throws ApiError.
RenderedChat render_chat(const ChatRequest& request, const ServedModel& model);

/// "tools" and "tool_choice" as the chat completions API has them.
void read_tools(const Fields& body, ChatRequest& request);
/// "reasoning_effort" and such: one of the seven levels, checked; unset if absent.
std::optional<std::string> read_effort(const Fields& fields, std::string_view key);

}  // namespace sluice
