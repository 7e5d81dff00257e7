#include "text/chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/tokenizer.h"

namespace sluice {
namespace {

// So that an agent's many tools leave room for the conversation.
constexpr size_t kMaxDemonstrated = 4;
constexpr size_t kMaxSentence = 120;  // bytes

struct Known {
  std::string_view mark;  // in the template's text
  const char* family;
  ChatFormat::Calls calls;
  const char *open, *close;
  const char *separator = "", *calls_open = "", *calls_close = "";
};

// From each family's published template and model card; the first whose mark is found counts.
constexpr Known kKnown[] = {
    {"<|channel|>", "harmony", ChatFormat::Calls::kHarmony, "", ""},
    {"<｜tool▁calls▁begin｜>", "deepseek", ChatFormat::Calls::kMarked, "<｜tool▁call▁begin｜>",
     "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
    {"<|tool_call_begin|>", "kimi", ChatFormat::Calls::kMarked, "<|tool_call_begin|>",
     "<|tool_call_end|>", "<|tool_call_argument_begin|>", "<|tool_calls_section_begin|>",
     "<|tool_calls_section_end|>"},
    {"[ARGS]", "mistral", ChatFormat::Calls::kMarked, "[TOOL_CALLS]", "", "[ARGS]"},
    {"[TOOL_CALLS]", "mistral-array", ChatFormat::Calls::kArray, "[TOOL_CALLS]", ""},
    {"<function=", "qwen3-coder", ChatFormat::Calls::kXml, "<tool_call>", "</tool_call>"},
    {"<|tool_call|>", "granite-array", ChatFormat::Calls::kArray, "<|tool_call|>", ""},
    {"<tool_call>", "hermes", ChatFormat::Calls::kJson, "<tool_call>", "</tool_call>"},
    {"<|python_tag|>", "llama3", ChatFormat::Calls::kBare, "<|python_tag|>", ""},
    {"\"parameters\": ", "llama3", ChatFormat::Calls::kBare, "<|python_tag|>", ""},
};

struct Thinking {
  std::string_view open, close;
};

constexpr Thinking kThinking[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"Here is my thought process:", "Here is my response:"},  // Granite 3.2
};

std::string example(const ChatFormat& format) {
  constexpr const char* kObject = R"({"name": NAME, "arguments": {...}})";
  switch (format.calls) {
    case ChatFormat::Calls::kMarked:
      return fmt::format("{}{}NAME{}{{...}}{}{}", format.calls_open, format.open, format.separator,
                         format.close, format.calls_close);
    case ChatFormat::Calls::kArray:
      return fmt::format("{}[{}]", format.open, kObject);
    case ChatFormat::Calls::kBare:
      return R"({"name": NAME, "parameters": {...}})";
    case ChatFormat::Calls::kJson:
    case ChatFormat::Calls::kXml:
    case ChatFormat::Calls::kHarmony:
      break;
  }
  return format.open + kObject + format.close;
}

std::string dumped(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// A value that stands for any that the schema allows.
OrderedJson stand_in(const OrderedJson& schema) {
  if (!schema.is_object()) return "...";
  if (schema.contains("const")) return schema["const"];
  for (const char* key : {"enum", "anyOf", "oneOf"}) {
    if (!schema.contains(key) || !schema[key].is_array() || schema[key].empty()) continue;
    const OrderedJson& first = schema[key].front();
    return std::string_view(key) == "enum" ? first : stand_in(first);
  }
  OrderedJson type = schema.value("type", OrderedJson());
  if (type.is_array() && !type.empty()) type = OrderedJson(type).front();
  if (type == "integer" || type == "number") return 0;
  if (type == "boolean") return true;
  if (type == "array") return OrderedJson::array();
  if (type == "object") return OrderedJson::object();
  return "...";
}

/// The required arguments, with spaces as models write them.
std::string sample_arguments(const ChatTool& tool) {
  const OrderedJson schema = arguments_schema(tool);
  const OrderedJson properties = schema.value("properties", OrderedJson::object());
  std::string text;
  for (const OrderedJson& name : schema.value("required", OrderedJson::array())) {
    if (!name.is_string()) continue;
    const auto property = properties.find(name.get<std::string>());
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", dumped(name),
                        dumped(property == properties.end() ? "..." : stand_in(*property)));
  }
  return "{" + text + "}";
}

/// What a user could say to have the tool called.
std::string sample_question(const ChatTool& tool) {
  const std::string& text = tool.description;
  const size_t end = std::min(text.find('\n'), text.find(". "));
  std::string sentence = text.substr(0, end);
  if (sentence.ends_with('.')) sentence.pop_back();
  if (sentence.empty() || sentence.size() > kMaxSentence) return "Use " + tool.name + ".";
  return sentence + ", please.";
}

/// A question and a call for each of the first tools: small models that were not trained to call
/// tools never do so by description alone.
OrderedJson demonstrations(const std::vector<ChatTool>& tools) {
  OrderedJson messages = OrderedJson::array();
  for (size_t i = 0; i < std::min(tools.size(), kMaxDemonstrated); ++i) {
    const OrderedJson function = {{"name", tools[i].name},
                                  {"arguments", sample_arguments(tools[i])}};
    messages.push_back({{"role", "user"}, {"content", sample_question(tools[i])}});
    messages.push_back({{"role", "assistant"},
                        {"content", ""},
                        {"tool_calls", OrderedJson::array({{{"function", function}}})}});
  }
  return messages;
}

std::string described(const std::vector<ChatTool>& tools, const ChatFormat& format) {
  std::string text = fmt::format(
      "You may call tools. To call one, answer with\n{}\n"
      "Several calls follow each other. The tools, with the JSON schemas of their arguments:",
      example(format));
  for (const ChatTool& tool : tools) {
    const OrderedJson json = {{"name", tool.name},
                              {"description", tool.description},
                              {"parameters", arguments_schema(tool)}};
    text += "\n" + dumped(json);
  }
  return text;
}

/// An assistant's calls as the model writes them; arguments that are texts stay as they are.
std::string written_calls(const OrderedJson& message) {
  std::string text;
  for (const OrderedJson& call : message["tool_calls"]) {
    const OrderedJson& function = call["function"];
    const OrderedJson& arguments = function["arguments"];
    if (!text.empty()) text += '\n';
    text += fmt::format(R"(<tool_call>{{"name": {}, "arguments": {}}}</tool_call>)",
                        dumped(function["name"]),
                        arguments.is_string() ? arguments.get<std::string>() : dumped(arguments));
  }
  return text;
}

/// Calls and results as texts; results that follow each other become one message.
void write_calls(OrderedJson& messages) {
  OrderedJson written = OrderedJson::array();
  bool after_result = false;
  for (const OrderedJson& message : messages) {
    const bool is_result = message["role"] == "tool";
    std::string content = message["content"].get<std::string>();
    if (message.contains("tool_calls")) {
      content += (content.empty() ? "" : "\n") + written_calls(message);
    }
    if (is_result) content = "<tool_response>\n" + content + "\n</tool_response>";
    if (is_result && after_result) {
      written.back()["content"] = written.back()["content"].get<std::string>() + "\n" + content;
    } else {
      written.push_back({{"role", is_result ? "user" : message["role"]}, {"content", content}});
    }
    after_result = is_result;
  }
  messages = std::move(written);
}

}  // namespace

OrderedJson arguments_schema(const ChatTool& tool) {
  if (tool.is_custom) {
    return {{"type", "object"},
            {"properties", {{"input", {{"type", "string"}}}}},
            {"required", {"input"}}};
  }
  if (tool.parameters.is_object()) return tool.parameters;
  return {{"type", "object"}, {"properties", OrderedJson::object()}};
}

std::vector<std::string> ChatFormat::markers() const {
  if (calls == Calls::kHarmony) {
    return {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>"};
  }
  std::vector<std::string> all = {open,        close,      separator,  calls_open,
                                  calls_close, think_open, think_close};
  std::erase(all, "");
  return all;
}

ChatFormat detect_chat_format(std::string_view text) {
  const auto has = [text](std::string_view part) { return text.find(part) != text.npos; };
  ChatFormat format;
  format.shows_tools = has("tools");
  format.shows_calls = has("tool_calls");
  for (const Thinking& thinking : kThinking) {
    if (!has(thinking.close)) continue;
    format.think_open = thinking.open;
    format.think_close = thinking.close;
    break;
  }
  for (const Known& known : kKnown) {
    if (!has(known.mark)) continue;
    format.family = known.family;
    format.calls = known.calls;
    format.open = known.open;
    format.close = known.close;
    format.separator = known.separator;
    format.calls_open = known.calls_open;
    format.calls_close = known.calls_close;
    format.fenced = format.family == "deepseek" && has("```json");
    break;
  }
  return format;
}

std::vector<int32_t> marker_tokens(const ChatFormat& format, const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  for (const std::string& marker : format.markers()) {
    const auto token = tokenizer.find(marker);
    if (token && tokenizer.is_special(*token)) tokens.push_back(*token);
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

OrderedJson shown_messages(const OrderedJson& messages, const std::vector<ChatTool>& tools,
                           const ChatFormat& format) {
  OrderedJson result = messages;
  if (!format.shows_tools && !tools.empty()) {
    const std::string text = described(tools, format);
    if (result[0]["role"] == "system") {
      // In front: instructions may grow from turn to turn, and the prefix stays the same.
      result[0]["content"] = text + "\n\n" + result[0]["content"].get<std::string>();
    } else {
      result.insert(result.begin(), OrderedJson{{"role", "system"}, {"content", text}});
    }
    const bool is_plain = format.family == "plain" && !format.shows_calls;
    const OrderedJson shown = is_plain ? demonstrations(tools) : OrderedJson::array();
    result.insert(result.begin() + 1, shown.begin(), shown.end());
  }
  if (!format.shows_calls) write_calls(result);
  return result;
}

}  // namespace sluice
