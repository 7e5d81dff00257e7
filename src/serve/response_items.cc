#include "serve/response_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "serve/chat_prompt.h"
#include "serve/openai.h"

namespace sluice {
namespace {

constexpr size_t kMaxItems = 20000;
constexpr std::string_view kSeal = "sluice1.";

/// What this server neither makes nor shows to the model, but takes back from a history.
constexpr std::string_view kSilentItems[] = {"web_search_call",
                                             "file_search_call",
                                             "computer_call",
                                             "computer_call_output",
                                             "image_generation_call",
                                             "code_interpreter_call",
                                             "local_shell_call",
                                             "local_shell_call_output",
                                             "shell_call",
                                             "shell_call_output",
                                             "apply_patch_call",
                                             "apply_patch_call_output",
                                             "mcp_list_tools",
                                             "mcp_approval_request",
                                             "mcp_approval_response",
                                             "mcp_call",
                                             "tool_search_call",
                                             "tool_search_output",
                                             "additional_tools",
                                             "compaction_trigger",
                                             "program",
                                             "program_output",
                                             "agent_message",
                                             "multi_agent_call",
                                             "multi_agent_call_output"};

std::string id_prefix(const std::string& type) {
  if (type == "message") return "msg_";
  if (type == "function_call") return "fc_";
  if (type == "function_call_output") return "fco_";
  if (type == "custom_tool_call") return "ctc_";
  if (type == "custom_tool_call_output") return "ctco_";
  if (type == "reasoning") return "rs_";
  if (type == "compaction") return "cmp_";
  return "item_";
}

bool is_text_part(const std::string& type) {
  return type == "input_text" || type == "output_text" || type == "text" ||
         type == "summary_text" || type == "reasoning_text" || type == "refusal";
}

/// Checks parts of a content; a string becomes one part of type `text_type`.
OrderedJson read_parts(const Fields& item, const char* key, const char* text_type) {
  const OrderedJson* content = item.find(key);
  if (content == nullptr) item.fail(key, "a string or an array of parts");
  if (content->is_string()) {
    return OrderedJson::array({{{"type", text_type}, {"text", *content}}});
  }
  if (!content->is_array()) item.fail(key, "a string or an array of parts");
  for (size_t i = 0; i < content->size(); ++i) {
    const Fields part((*content)[i], fmt::format("{}[{}]", item.path(key), i));
    const std::string type = part.required_text("type");
    if (!is_text_part(type)) {
      throw ApiError(400,
                     fmt::format("{}: expected a part of text, got {}; this model takes no other "
                                 "input",
                                 part.path("type"), type.substr(0, 40)),
                     part.path("type"), "unsupported_content");
    }
    part.required_text(type == "refusal" ? "refusal" : "text");
  }
  return *content;
}

std::string text_of(const OrderedJson& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += '\n';
    const bool is_refusal = parts[i]["type"] == "refusal";
    text += parts[i][is_refusal ? "refusal" : "text"].get<std::string>();
  }
  return text;
}

void read_message(const Fields& fields, OrderedJson& item) {
  const std::string role =
      fields.required_choice("role", {"user", "assistant", "system", "developer"});
  const bool is_answer = role == "assistant";
  item["content"] = read_parts(fields, "content", is_answer ? "output_text" : "input_text");
  for (OrderedJson& part : item["content"]) {
    if (part["type"] == "output_text" && !part.contains("annotations")) {
      part["annotations"] = OrderedJson::array();
    }
  }
  if (!item.contains("status")) item["status"] = "completed";
}

void read_reasoning(const Fields& fields) {
  for (const char* key : {"summary", "content"}) {
    if (fields.array(key) != nullptr) read_parts(fields, key, "summary_text");
  }
  fields.text("encrypted_content");
}

OrderedJson referenced_item(const Fields& fields, const FindItem& find_item) {
  const std::string id = fields.required_text("id");
  std::optional<OrderedJson> item = find_item(id);
  if (item) return std::move(*item);
  throw ApiError(404, fmt::format("{}: no item with id {} is stored", fields.path("id"), id),
                 fields.path("id"), "item_not_found");
}

/// The messages that a compaction has sealed.
OrderedJson open_messages(const std::string& sealed, const std::string& param) {
  const OrderedJson messages = OrderedJson::parse(open_text(sealed, param), nullptr, false);
  if (messages.is_array()) return read_messages(messages, param);
  throw ApiError(400, param + ": expected content that this server has made", param,
                 "invalid_encrypted_content");
}

/// Checks one item and completes it.
OrderedJson read_item(const OrderedJson& json, const std::string& path, const FindItem& find_item) {
  const Fields fields(json, path);
  const std::string type = fields.text("type").value_or("message");
  if (type == "item_reference") return referenced_item(fields, find_item);
  OrderedJson item = {{"id", fields.text("id").value_or("")}, {"type", type}};
  if (item["id"] == "") item["id"] = make_id(id_prefix(type));
  for (const auto& [key, value] : json.items()) {
    if (key != "id" && key != "type") item[key] = value;
  }
  if (type == "message") {
    read_message(fields, item);
  } else if (type == "function_call" || type == "custom_tool_call") {
    fields.required_text("call_id");
    fields.required_text("name");
    if (!fields.text("namespace")) item.erase("namespace");
    fields.required_text(type == "function_call" ? "arguments" : "input");
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    fields.required_text("call_id");
    read_parts(fields, "output", "input_text");
  } else if (type == "reasoning") {
    read_reasoning(fields);
  } else if (type == "compaction") {
    open_messages(fields.required_text("encrypted_content"), fields.path("encrypted_content"));
  } else if (std::find(std::begin(kSilentItems), std::end(kSilentItems), type) ==
             std::end(kSilentItems)) {
    fields.fail("type", "the type of an item, such as message or function_call_output");
  }
  return item;
}

std::string reasoning_text(const OrderedJson& item) {
  const auto sealed = item.find("encrypted_content");
  if (sealed != item.end() && sealed->is_string() &&
      sealed->get_ref<const std::string&>().starts_with(kSeal)) {
    return open_text(*sealed, "encrypted_content");
  }
  for (const char* key : {"content", "summary"}) {
    const auto parts = item.find(key);
    if (parts != item.end() && parts->is_array() && !parts->empty()) return text_of(*parts);
  }
  return "";
}

/// Collects messages; what a model made without a pause goes into one.
class MessageList {
 public:
  void add(const OrderedJson& item);
  OrderedJson take() { return std::move(messages_); }

  void add_message(const char* role, const std::string& text) {
    turn_ = false;
    messages_.push_back({{"role", role}, {"content", text}});
  }
  /// Templates take one system message, the first.
  void add_leading_system(const std::string& text) {
    if (messages_.empty()) return add_message("system", text);
    std::string& content = messages_[0]["content"].get_ref<std::string&>();
    content += "\n\n" + text;
  }

 private:
  OrderedJson& turn() {
    if (!turn_) messages_.push_back({{"role", "assistant"}, {"content", ""}});
    turn_ = true;
    return messages_.back();
  }
  void add_text(const std::string& role, const std::string& text);
  void add_call(const OrderedJson& item, bool is_custom);
  void add_output(const OrderedJson& item);
  void add_sealed(const OrderedJson& messages);

  OrderedJson messages_ = OrderedJson::array();
  bool turn_ = false;  // the last message is the assistant's and still grows
  std::set<std::string> calls_;
};

void MessageList::add(const OrderedJson& item) {
  const std::string type = item["type"];
  if (type == "message") {
    add_text(item["role"], text_of(item["content"]));
  } else if (type == "function_call" || type == "custom_tool_call") {
    add_call(item, type == "custom_tool_call");
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    add_output(item);
  } else if (type == "reasoning") {
    turn_ = false;
    const std::string text = reasoning_text(item);
    if (!text.empty()) turn()["reasoning_content"] = text;
  } else if (type == "compaction") {
    add_sealed(open_messages(item["encrypted_content"], "encrypted_content"));
  }
}

void MessageList::add_text(const std::string& role, const std::string& text) {
  if (role == "assistant") {
    if (turn_ && (messages_.back()["content"] != "" || messages_.back().contains("tool_calls"))) {
      turn_ = false;
    }
    turn()["content"] = text;
    return;
  }
  const bool is_system = role != "user";
  const bool leads =
      messages_.empty() || (messages_.size() == 1 && messages_[0]["role"] == "system");
  if (is_system && leads) return add_leading_system(text);
  add_message(is_system ? "system" : "user", text);
}

void MessageList::add_call(const OrderedJson& item, bool is_custom) {
  const std::string id = item["call_id"];
  calls_.insert(id);
  const std::string name = ResponseTools::model_name(item["name"], item.value("namespace", ""));
  OrderedJson arguments =
      is_custom ? OrderedJson(dump({{"input", item["input"]}})) : item["arguments"];
  OrderedJson& message = turn();
  if (!message.contains("tool_calls")) message["tool_calls"] = OrderedJson::array();
  message["tool_calls"].push_back(
      {{"id", id},
       {"type", "function"},
       {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
}

void MessageList::add_output(const OrderedJson& item) {
  const std::string id = item["call_id"];
  if (!calls_.contains(id)) {
    throw ApiError(400,
                   fmt::format("input: no tool call found for the {} with call_id {}",
                               item["type"].get<std::string>(), id.substr(0, 100)),
                   "input");
  }
  const OrderedJson& output = item["output"];
  turn_ = false;
  messages_.push_back(
      {{"role", "tool"},
       {"tool_call_id", id},
       {"content", output.is_string() ? output.get<std::string>() : text_of(output)}});
}

void MessageList::add_sealed(const OrderedJson& messages) {
  for (const OrderedJson& message : messages) {
    if (message["role"] == "system") {
      add_text("system", message["content"]);
      continue;
    }
    turn_ = false;
    messages_.push_back(message);
    if (!message.contains("tool_calls")) continue;
    for (const OrderedJson& call : message["tool_calls"]) calls_.insert(call.value("id", ""));
  }
}

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

OrderedJson read_response_input(const Fields& body, const FindItem& find_item) {
  const OrderedJson* input = body.find("input");
  if (input == nullptr) return OrderedJson::array();
  if (input->is_string()) {
    const OrderedJson message = {{"role", "user"}, {"content", *input}};
    return OrderedJson::array({read_item(message, "input", find_item)});
  }
  if (!input->is_array() || input->size() > kMaxItems) {
    body.fail("input", fmt::format("a string or an array of at most {} items", kMaxItems));
  }
  OrderedJson items = OrderedJson::array();
  for (size_t i = 0; i < input->size(); ++i) {
    items.push_back(read_item((*input)[i], fmt::format("input[{}]", i), find_item));
  }
  return items;
}

void add_item_tools(const OrderedJson& items, ResponseTools& tools) {
  for (size_t i = 0; i < items.size(); ++i) {
    const OrderedJson& item = items[i];
    if (item["type"] != "additional_tools" && item["type"] != "tool_search_output") continue;
    const Fields fields(item, fmt::format("input[{}]", i));
    if (const OrderedJson* list = fields.array("tools")) tools.add(*list, fields.path("tools"));
  }
}

OrderedJson response_messages(const OrderedJson& items, const std::string& instructions) {
  MessageList list;
  if (!instructions.empty()) list.add_leading_system(instructions);
  const auto last = std::find_if(items.rbegin(), items.rend(), [](const OrderedJson& item) {
    return item["type"] == "compaction";
  });
  const auto first = last == items.rend() ? items.begin() : std::prev(last.base());
  for (auto item = first; item != items.end(); ++item) list.add(*item);
  return list.take();
}

std::string seal_text(const std::string& text) {
  std::string sealed(kSeal);
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    bits = bits << 8 | uint8_t(c);
    for (n_bits += 8; n_bits >= 6; n_bits -= 6) sealed += kAlphabet[bits >> (n_bits - 6) & 63];
  }
  if (n_bits > 0) sealed += kAlphabet[bits << (6 - n_bits) & 63];
  return sealed;
}

std::string open_text(const std::string& sealed, const std::string& param) {
  const bool ours = sealed.starts_with(kSeal);
  std::string text;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : std::string_view(sealed).substr(ours ? kSeal.size() : sealed.size())) {
    const size_t value = kAlphabet.find(c);
    if (value == kAlphabet.npos) return open_text("", param);
    bits = bits << 6 | uint32_t(value);
    n_bits += 6;
    if (n_bits >= 8) text += char(bits >> (n_bits -= 8) & 255);
  }
  if (!ours) {
    throw ApiError(400, param + ": expected content that this server has made", param,
                   "invalid_encrypted_content");
  }
  return OrderedJson::parse(dump(text));  // a forged one may not be UTF-8
}

}  // namespace sluice
