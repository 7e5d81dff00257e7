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

OrderedJson read_message(const OrderedJson& json, const std::string& path) {
  const Fields fields(json, path);
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

ChatTool read_function(const Fields& tool) {
  const OrderedJson* function = tool.object("function");
  if (function == nullptr) tool.fail("function", "an object");
  const Fields fields(*function, tool.path("function"));
  ChatTool result;
  result.name = fields.required_text("name");
  result.description = fields.text("description").value_or("");
  if (const OrderedJson* parameters = fields.object("parameters")) result.parameters = *parameters;
  return result;
}

/// A tool that takes text.
ChatTool read_custom(const Fields& tool) {
  const OrderedJson* custom = tool.object("custom");
  if (custom == nullptr) tool.fail("custom", "an object");
  const Fields fields(*custom, tool.path("custom"));
  ChatTool result;
  result.is_custom = true;
  result.name = fields.required_text("name");
  result.description = fields.text("description").value_or("");
  const OrderedJson* format = fields.object("format");
  if (format == nullptr) return result;
  const Fields format_fields(*format, fields.path("format"));
  if (format_fields.choice("type", {"text", "grammar"}) != "grammar") return result;
  const OrderedJson* grammar = format_fields.object("grammar");
  if (grammar == nullptr) format_fields.fail("grammar", "an object");
  const Fields grammar_fields(*grammar, format_fields.path("grammar"));
  result.grammar_is_regex = grammar_fields.choice("syntax", {"lark", "regex"}) == "regex";
  result.grammar = grammar_fields.required_text("definition");
  return result;
}

OrderedJson tool_json(const ChatTool& tool) {
  OrderedJson parameters = tool.parameters;
  if (tool.is_custom) {
    parameters = {{"type", "object"},
                  {"properties", {{"input", {{"type", "string"}}}}},
                  {"required", {"input"}}};
  } else if (parameters.is_null()) {
    parameters = {{"type", "object"}, {"properties", OrderedJson::object()}};
  }
  return {{"type", "function"},
          {"function",
           {{"name", tool.name},
            {"description", tool.description},
            {"parameters", std::move(parameters)}}}};
}

}  // namespace

OrderedJson read_messages(const OrderedJson& messages, const std::string& param) {
  if (!messages.is_array() || messages.empty()) {
    throw ApiError(400, param + ": expected an array of at least one message", param);
  }
  OrderedJson result = OrderedJson::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    result.push_back(read_message(messages[i], fmt::format("{}[{}]", param, i)));
  }
  return result;
}

void read_tools(const Fields& body, ChatRequest& request) {
  const OrderedJson* tools = body.array("tools");
  for (size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const Fields tool((*tools)[i], fmt::format("tools[{}]", i));
    if (tool.find("type") == nullptr) tool.fail("type", "function or custom");
    const bool is_custom = tool.choice("type", {"function", "custom"}) == "custom";
    request.tools.push_back(is_custom ? read_custom(tool) : read_function(tool));
  }
  const OrderedJson* choice = body.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    request.tool_choice = ToolChoice::kNone;
  } else if (*choice == "required") {
    request.tool_choice = ToolChoice::kRequired;
  } else if (choice->is_object()) {
    const Fields fields(*choice, "tool_choice");
    const std::string type = fields.required_text("type");
    const OrderedJson* named =
        type == "function" || type == "custom" ? fields.object(type) : nullptr;
    if (named == nullptr) fields.fail("type", "function or custom, and an object of that name");
    request.tool_choice = ToolChoice::kNamed;
    request.named_tool = Fields(*named, fields.path(type)).required_text("name");
  } else {
    body.fail("tool_choice", "auto, none, required or an object that names a tool");
  }
}

std::optional<std::string> read_effort(const Fields& fields, std::string_view key) {
  return fields.choice(key, {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
}

std::vector<Token> chat_prompt(const ChatRequest& request, const ServedModel& model) {
  TemplateInput input;
  input.messages = request.messages;
  if (!request.tools.empty() && request.tool_choice != ToolChoice::kNone) {
    input.tools = OrderedJson::array();
    for (const ChatTool& tool : request.tools) input.tools.push_back(tool_json(tool));
  }
  input.variables = model.template_variables;
  if (request.effort) {
    input.variables["reasoning_effort"] = *request.effort;
    input.variables["enable_thinking"] = *request.effort != "none";
  }
  input.variables.update(request.template_variables);
  input.add_generation_prompt = true;
  try {
    return model.tokenizer->encode(model.chat->render(input), /*add_special=*/false);
  } catch (const Error& error) {
    throw ApiError(400, fmt::format("{}: {}", request.messages_param, error.what()),
                   request.messages_param);
  }
}

}  // namespace sluice
