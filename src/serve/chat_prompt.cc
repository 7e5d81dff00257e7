#include "serve/chat_prompt.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

/// The text of a content: a string, or an array of text parts.
std::string read_content(const Fields& message, const OrderedJson& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) message.fail("content", "a string or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Fields part(content[i], fmt::format("{}[{}]", message.path("content"), i));
    const std::string type = part.required_text("type");
    const bool is_refusal = type == "refusal";
    if (type != "text" && type != "input_text" && type != "output_text" && !is_refusal) {
      throw ApiError(400,
                     fmt::format("{}: expected a part of type text, got {}; this model takes no "
                                 "other input",
                                 part.path("type"), type.substr(0, 40)),
                     part.path("type"), "unsupported_content");
    }
    if (i > 0) text += '\n';
    text += part.required_text(is_refusal ? "refusal" : "text");
  }
  return text;
}

OrderedJson read_tool_calls(const Fields& message, const OrderedJson& calls) {
  OrderedJson result = OrderedJson::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Fields call(calls[i], fmt::format("{}[{}]", message.path("tool_calls"), i));
    const OrderedJson* function = call.object("function");
    if (function == nullptr) call.fail("function", "an object");
    const Fields fields(*function, call.path("function"));
    fields.required_text("name");
    OrderedJson copy = calls[i];
    // Templates write arguments as JSON themselves.
    const OrderedJson arguments =
        OrderedJson::parse(fields.text("arguments").value_or("{}"), nullptr, false);
    if (arguments.is_object()) copy["function"]["arguments"] = arguments;
    result.push_back(std::move(copy));
  }
  return result;
}

OrderedJson read_message(const OrderedJson& json, size_t number) {
  const Fields fields(json, fmt::format("messages[{}]", number));
  if (fields.find("role") == nullptr) fields.fail("role", "a string");
  const std::string role =
      *fields.choice("role", {"system", "developer", "user", "assistant", "tool", "function"});
  OrderedJson message = json;
  message["role"] = role == "developer" ? "system" : role == "function" ? "tool" : role;
  const OrderedJson* calls = fields.array("tool_calls");
  const OrderedJson* content = fields.find("content");
  if (content == nullptr && role != "assistant") {
    fields.fail("content", "a string or an array of parts");
  }
  message["content"] = content == nullptr ? "" : read_content(fields, *content);
  if (calls != nullptr) message["tool_calls"] = read_tool_calls(fields, *calls);
  fields.text("name");
  fields.text("tool_call_id");
  return message;
}

/// nullptr unless the request offers tools.
const OrderedJson* read_tools(const Fields& body) {
  const OrderedJson* tools = body.array("tools");
  for (size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const Fields tool((*tools)[i], fmt::format("tools[{}]", i));
    if (tool.required_text("type") != "function") tool.fail("type", "function");
    const OrderedJson* function = tool.object("function");
    if (function == nullptr) tool.fail("function", "an object");
    const Fields fields(*function, tool.path("function"));
    fields.required_text("name");
    fields.object("parameters");
  }
  const OrderedJson* choice = body.find("tool_choice");
  if (choice != nullptr && *choice != "auto" && *choice != "none") {
    body.fail("tool_choice", "auto or none (this server cannot force a call)");
  }
  const bool wanted = tools != nullptr && !tools->empty() && (!choice || *choice != "none");
  return wanted ? tools : nullptr;
}

}  // namespace

OrderedJson read_messages(const Fields& body) {
  const OrderedJson* messages = body.array("messages");
  if (messages == nullptr || messages->empty()) {
    body.fail("messages", "an array of at least one message");
  }
  OrderedJson result = OrderedJson::array();
  for (size_t i = 0; i < messages->size(); ++i) result.push_back(read_message((*messages)[i], i));
  return result;
}

std::vector<Token> chat_prompt(const Fields& body, const ServedModel& model) {
  TemplateInput input;
  input.messages = read_messages(body);
  if (const OrderedJson* tools = read_tools(body)) input.tools = *tools;
  input.variables = model.template_variables;
  const auto effort =
      body.choice("reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
  if (effort) {
    input.variables["reasoning_effort"] = *effort;
    input.variables["enable_thinking"] = *effort != "none";
  }
  if (const OrderedJson* more = body.object("chat_template_kwargs")) input.variables.update(*more);
  input.add_generation_prompt = true;
  try {
    return model.tokenizer->encode(model.chat->render(input), /*add_special=*/false);
  } catch (const Error& error) {
    throw ApiError(400, fmt::format("messages: {}", error.what()), "messages");
  }
}

}  // namespace sluice
