#include "serve/chat_prompt.h"

#include <fmt/format.h>

#include <cctype>
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

/// Checks a text and leaves out null, which templates would take for one.
void keep_text(const Fields& fields, const char* key, OrderedJson& object) {
  if (!fields.text(key)) object.erase(key);
}

OrderedJson read_tool_calls(const Fields& message, const OrderedJson& calls) {
  OrderedJson result = OrderedJson::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Fields call(calls[i], fmt::format("{}[{}]", message.path("tool_calls"), i));
    OrderedJson copy = calls[i];
    keep_text(call, "id", copy);
    if (const OrderedJson* custom = call.object("custom")) {
      const Fields fields(*custom, call.path("custom"));
      copy["type"] = "function";
      copy["function"] = {{"name", fields.required_text("name")},
                          {"arguments", dump({{"input", fields.text("input").value_or("")}})}};
      copy.erase("custom");
      result.push_back(std::move(copy));
      continue;
    }
    const OrderedJson* function = call.object("function");
    if (function == nullptr) call.fail("function", "an object");
    const Fields fields(*function, call.path("function"));
    fields.required_text("name");
    const OrderedJson* arguments = fields.find("arguments");
    const bool is_object = arguments != nullptr && arguments->is_object();
    copy["function"]["arguments"] =
        is_object ? dump(*arguments) : fields.text("arguments").value_or("{}");
    result.push_back(std::move(copy));
  }
  return result;
}

OrderedJson read_message(const OrderedJson& json, const std::string& path) {
  const Fields fields(json, path);
  const std::string role = fields.required_choice(
      "role", {"system", "developer", "user", "assistant", "tool", "function"});
  OrderedJson message = json;
  message["role"] = role == "developer" ? "system" : role == "function" ? "tool" : role;
  const OrderedJson* calls = fields.array("tool_calls");
  const OrderedJson* content = fields.find("content");
  if (content == nullptr && role != "assistant") {
    fields.fail("content", "a string or an array of parts");
  }
  message["content"] = content == nullptr ? "" : read_content(fields, *content);
  if (calls != nullptr) message["tool_calls"] = read_tool_calls(fields, *calls);
  for (const char* key : {"name", "tool_call_id", "reasoning_content", "refusal"}) {
    keep_text(fields, key, message);
  }
  return message;
}

void read_allowed_tools(const Fields& choice, ChatRequest& request) {
  const OrderedJson* object = choice.object("allowed_tools");
  if (object == nullptr) choice.fail("allowed_tools", "an object");
  const Fields fields(*object, choice.path("allowed_tools"));
  if (fields.choice("mode", {"auto", "required"}) == "required") {
    request.tool_choice = ToolChoice::kRequired;
  }
  const OrderedJson* tools = fields.array("tools");
  if (tools == nullptr || tools->empty()) fields.fail("tools", "an array of at least one tool");
  for (size_t i = 0; i < tools->size(); ++i) {
    const Fields tool((*tools)[i], fmt::format("{}[{}]", fields.path("tools"), i));
    const std::string type = tool.required_text("type");
    const OrderedJson* named = type == "function" || type == "custom" ? tool.object(type) : nullptr;
    if (named == nullptr) tool.fail("type", "function or custom, and an object of that name");
    request.allowed_tools.push_back(Fields(*named, tool.path(type)).required_text("name"));
  }
}

ChatTool read_function(const Fields& tool) {
  const OrderedJson* function = tool.object("function");
  if (function == nullptr) tool.fail("function", "an object");
  const Fields fields(*function, tool.path("function"));
  ChatTool result;
  result.name = fields.required_text("name");
  result.description = fields.text("description").value_or("");
  result.strict = fields.boolean("strict", false);
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
  if (format_fields.required_choice("type", {"text", "grammar"}) != "grammar") return result;
  const OrderedJson* grammar = format_fields.object("grammar");
  if (grammar == nullptr) format_fields.fail("grammar", "an object");
  const Fields grammar_fields(*grammar, format_fields.path("grammar"));
  result.grammar_is_regex = grammar_fields.required_choice("syntax", {"lark", "regex"}) == "regex";
  result.grammar = grammar_fields.required_text("definition");
  return result;
}

OrderedJson tool_json(const ChatTool& tool) {
  return {{"type", "function"},
          {"function",
           {{"name", tool.name},
            {"description", tool.description},
            {"parameters", arguments_schema(tool)}}}};
}

/// Some templates demand ids of nine letters and digits.
std::string short_id(const std::string& id) {
  std::string result;
  for (auto c = id.rbegin(); c != id.rend() && result.size() < 9; ++c) {
    if (std::isalnum(static_cast<unsigned char>(*c)) != 0) result.insert(0, 1, *c);
  }
  return std::string(9 - result.size(), '0') + result;
}

/// A stand-in for the arguments of call number `i`, which is written as what it stands for.
std::string stand_in(size_t i) { return fmt::format("arguments-{}-of-a-call", i); }

/// The messages with arguments as objects, and other names for some fields that templates use.
OrderedJson template_messages(OrderedJson messages, const ChatFormat& format, bool stand_ins) {
  size_t n_calls = 0;
  for (OrderedJson& message : messages) {
    if (message.contains("reasoning_content")) message["thinking"] = message["reasoning_content"];
    const bool short_ids = format.family.starts_with("mistral");
    if (short_ids && message.contains("tool_call_id")) {
      message["tool_call_id"] = short_id(message["tool_call_id"].get<std::string>());
    }
    if (!message.contains("tool_calls")) continue;
    for (OrderedJson& call : message["tool_calls"]) {
      if (short_ids) call["id"] = short_id(call.value("id", ""));
      OrderedJson& arguments = call["function"]["arguments"];
      if (stand_ins) {
        arguments = {{stand_in(n_calls++), 0}};
        continue;
      }
      if (!arguments.is_string()) continue;
      OrderedJson object = OrderedJson::parse(arguments.get<std::string>(), nullptr, false);
      if (object.is_object()) arguments = std::move(object);
    }
  }
  return messages;
}

/// Every call's arguments as they were sent; empty if there are none, or not only objects.
std::vector<std::string> sent_arguments(const OrderedJson& messages) {
  std::vector<std::string> result;
  for (const OrderedJson& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (const OrderedJson& call : message["tool_calls"]) {
      const OrderedJson& arguments = call["function"]["arguments"];
      result.push_back(arguments.is_string() ? arguments.get<std::string>() : "");
      if (!OrderedJson::parse(result.back(), nullptr, false).is_object()) return {};
    }
  }
  return result;
}

/// Puts the arguments where their stand-ins were written; false if the template wrote them in
/// another way.
bool replace_stand_ins(std::string& text, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string key = fmt::format("{{\"{}\":", stand_in(i));
    const size_t at = text.find(key);
    if (at == text.npos || text.find(key, at + 1) != text.npos) return false;
    size_t end = at + key.size();
    if (text.substr(end, 1) == " ") ++end;
    if (text.substr(end, 2) != "0}") return false;
    text.replace(at, end + 2 - at, arguments[i]);
  }
  return true;
}

/// The text that was generated is the text that is sent again: a template would write arguments
/// with spaces of its own, and the prefix would not be found in the cache.
std::string render_exactly(const ServedModel& model, TemplateInput& input,
                           const OrderedJson& messages) {
  const std::vector<std::string> arguments = sent_arguments(messages);
  if (!arguments.empty()) {
    try {
      input.messages = template_messages(messages, model.format, /*stand_ins=*/true);
      std::string text = model.chat->render(input);
      if (replace_stand_ins(text, arguments)) return text;
    } catch (const Error&) {  // the template looks into arguments
    }
  }
  input.messages = template_messages(messages, model.format, /*stand_ins=*/false);
  return model.chat->render(input);
}

bool opens_thinking(std::string_view prompt, const ChatFormat& format) {
  while (!prompt.empty() && std::isspace(static_cast<unsigned char>(prompt.back())) != 0) {
    prompt.remove_suffix(1);
  }
  return !format.think_open.empty() && prompt.ends_with(format.think_open);
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
    if (type == "allowed_tools") return read_allowed_tools(fields, request);
    const OrderedJson* named =
        type == "function" || type == "custom" ? fields.object(type) : nullptr;
    if (named == nullptr) {
      fields.fail("type", "function, custom or allowed_tools, and an object of that name");
    }
    request.tool_choice = ToolChoice::kNamed;
    request.named_tool = Fields(*named, fields.path(type)).required_text("name");
  } else {
    body.fail("tool_choice", "auto, none, required or an object that names a tool");
  }
}

std::optional<std::string> read_effort(const Fields& fields, std::string_view key) {
  return fields.choice(key, {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
}

RenderedChat render_chat(const ChatRequest& request, const ServedModel& model) {
  TemplateInput input;
  std::vector<ChatTool> tools;
  if (request.tool_choice != ToolChoice::kNone) tools = request.tools;
  if (!tools.empty() && model.format.shows_tools) {
    input.tools = OrderedJson::array();
    for (const ChatTool& tool : tools) input.tools.push_back(tool_json(tool));
  }
  input.variables = model.template_variables;
  if (request.effort) {
    input.variables["reasoning_effort"] = *request.effort;
    input.variables["enable_thinking"] = *request.effort != "none";
  }
  input.variables.update(request.template_variables);
  input.add_generation_prompt = true;
  try {
    const OrderedJson messages = shown_messages(request.messages, tools, model.format);
    const std::string text = render_exactly(model, input, messages);
    return {.tokens = encode_prompt(model, text, /*add_special=*/false, request.messages_param),
            .thinking = opens_thinking(text, model.format)};
  } catch (const Error& error) {
    throw ApiError(400, fmt::format("{}: {}", request.messages_param, error.what()),
                   request.messages_param);
  }
}

std::vector<Token> chat_prompt(const ChatRequest& request, const ServedModel& model) {
  return render_chat(request, model).tokens;
}

bool prompt_fits(const ChatRequest& request, const ServedModel& model, int64_t limit) {
  try {
    return int64_t(chat_prompt(request, model).size()) <= limit;
  } catch (const ApiError& error) {
    if (error.code() != kContextExceeded) throw;
    return false;
  }
}

}  // namespace sluice
