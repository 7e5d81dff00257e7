#include "serve/messages_request.h"

#include <fmt/format.h>

#include <utility>

namespace sluice {
namespace {

/// Thinking budgets in tokens below which an effort is enough.
constexpr int64_t kLowBudget = 2048, kMediumBudget = 8192;

Fields item(const OrderedJson& list, size_t i, const std::string& path) {
  return Fields(list[i], fmt::format("{}[{}]", path, i));
}

[[noreturn]] void fail_type(const Fields& block, const std::string& type) {
  throw ApiError(
      400,
      fmt::format("{}: expected a block of text, got {}; this model takes no other input",
                  block.path("type"), type.substr(0, 40)),
      block.path("type"), "unsupported_content");
}

std::string document_text(const Fields& block) {
  const OrderedJson* source = block.object("source");
  if (source == nullptr) block.fail("source", "an object");
  const Fields fields(*source, block.path("source"));
  const std::string type = fields.required_text("type");
  if (type != "text") fail_type(fields, "a document of type " + type);
  return fields.required_text("data");
}

void append(std::string& text, const std::string& more) {
  if (!text.empty() && !more.empty()) text += '\n';
  text += more;
}

/// A string, or blocks of text.
std::string read_text(const Fields& fields, std::string_view key) {
  const OrderedJson* content = fields.find(key);
  if (content == nullptr) return "";
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) fields.fail(key, "a string or an array of blocks");
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    const Fields block = item(*content, i, fields.path(key));
    const std::string type = block.required_text("type");
    if (type == "document") {
      append(text, document_text(block));
    } else if (type == "text") {
      append(text, block.required_text("text"));
    } else {
      fail_type(block, type);
    }
  }
  return text;
}

/// Collects messages as the chat completions API has them.
class Conversation {
 public:
  void add_system(const std::string& text) {
    if (!text.empty()) list_.push_back({{"role", "system"}, {"content", text}});
  }

  void add(const Fields& message) {
    const std::string role = message.required_choice("role", {"user", "assistant", "system"});
    if (message.find("content") == nullptr) {
      message.fail("content", "a string or an array of blocks");
    }
    if (role == "system") {
      add_system(read_text(message, "content"));
    } else if (role == "assistant") {
      add_assistant(message);
    } else {
      add_user(message);
    }
  }

  OrderedJson take() { return std::move(list_); }

 private:
  /// Users that follow each other are one: many templates refuse two in a row.
  void add_user_text(const std::string& text) {
    if (text.empty()) return;
    if (!list_.empty() && list_.back()["role"] == "user") {
      auto& content = list_.back()["content"].get_ref<std::string&>();
      append(content, text);
    } else {
      list_.push_back({{"role", "user"}, {"content", text}});
    }
  }

  void add_user(const Fields& message) {
    const OrderedJson* content = message.find("content");
    if (!content->is_array()) return add_user_text(read_text(message, "content"));
    for (size_t i = 0; i < content->size(); ++i) {
      const Fields block = item(*content, i, message.path("content"));
      const std::string type = block.required_text("type");
      if (type == "tool_result") {
        list_.push_back({{"role", "tool"},
                         {"tool_call_id", block.required_text("tool_use_id")},
                         {"content", read_text(block, "content")}});
      } else if (type == "document") {
        add_user_text(document_text(block));
      } else if (type == "text") {
        add_user_text(block.required_text("text"));
      } else {
        fail_type(block, type);
      }
    }
  }

  void add_assistant(const Fields& message) {
    OrderedJson result = {{"role", "assistant"}, {"content", ""}};
    std::string text, reasoning;
    const OrderedJson& content = *message.find("content");
    if (!content.is_array()) text = read_text(message, "content");
    for (size_t i = 0; content.is_array() && i < content.size(); ++i) {
      const Fields block = item(content, i, message.path("content"));
      const std::string type = block.required_text("type");
      if (type == "text") {
        append(text, block.required_text("text"));
      } else if (type == "thinking") {
        append(reasoning, block.required_text("thinking"));
      } else if (type == "tool_use") {
        const OrderedJson* input = block.object("input");
        result["tool_calls"].push_back({{"id", block.required_text("id")},
                                        {"type", "function"},
                                        {"function",
                                         {{"name", block.required_text("name")},
                                          {"arguments", input == nullptr ? "{}" : dump(*input)}}}});
      }
      // What another server has run or encrypted says nothing to this model.
    }
    result["content"] = text;
    if (!reasoning.empty()) result["reasoning_content"] = reasoning;
    list_.push_back(std::move(result));
  }

  OrderedJson list_ = OrderedJson::array();
};

void read_messages(const Fields& body, ChatRequest& request) {
  const OrderedJson* messages = body.array("messages");
  if (messages == nullptr || messages->empty()) {
    body.fail("messages", "an array of at least one message");
  }
  Conversation conversation;
  conversation.add_system(read_text(body, "system"));
  for (size_t i = 0; i < messages->size(); ++i) conversation.add(item(*messages, i, "messages"));
  if ((*messages).back()["role"] == "assistant") {
    body.fail("messages", "a user's message at the end (an answer cannot be begun for the model)");
  }
  request.messages = conversation.take();
}

void read_tools(const Fields& body, ChatRequest& request) {
  const OrderedJson* tools = body.array("tools");
  for (size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const Fields fields = item(*tools, i, "tools");
    if (fields.text("type").value_or("custom") != "custom") continue;
    ChatTool tool;
    tool.name = fields.required_text("name");
    tool.description = fields.text("description").value_or("");
    if (const OrderedJson* schema = fields.object("input_schema")) tool.parameters = *schema;
    request.tools.push_back(std::move(tool));
  }
  const OrderedJson* choice = body.object("tool_choice");
  if (choice == nullptr) return;
  const Fields fields(*choice, "tool_choice");
  const std::string type = fields.required_choice("type", {"auto", "any", "tool", "none"});
  if (type == "any") request.tool_choice = ToolChoice::kRequired;
  if (type == "none") request.tool_choice = ToolChoice::kNone;
  if (type == "tool") {
    request.tool_choice = ToolChoice::kNamed;
    request.named_tool = fields.required_text("name");
  }
  request.parallel_calls = !fields.boolean("disable_parallel_tool_use", false);
}

void read_thinking(const Fields& body, ChatRequest& request) {
  if (const OrderedJson* thinking = body.object("thinking")) {
    const Fields fields(*thinking, "thinking");
    const std::string type = fields.required_choice("type", {"enabled", "disabled", "adaptive"});
    const auto budget = fields.integer("budget_tokens", 1, INT32_MAX);
    if (type == "enabled" && !budget) fields.fail("budget_tokens", "an integer of at least 1");
    if (type == "disabled") request.effort = "none";
    if (type == "enabled") {
      request.effort = *budget < kLowBudget ? "low" : *budget < kMediumBudget ? "medium" : "high";
    }
  }
  const OrderedJson* output = body.object("output_config");
  if (output == nullptr) return;
  const Fields fields(*output, "output_config");
  const auto effort = fields.choice("effort", {"low", "medium", "high", "xhigh", "max"});
  if (effort && request.effort != "none") request.effort = *effort;
  const OrderedJson* format = fields.object("format");
  if (format == nullptr) return;
  const Fields format_fields(*format, "output_config.format");
  if (format_fields.required_text("type") != "json_schema") {
    format_fields.fail("type", "json_schema");
  }
  const OrderedJson* schema = format_fields.object("schema");
  if (schema == nullptr) format_fields.fail("schema", "an object");
  request.format.kind = AnswerFormat::Kind::kJsonSchema;
  request.format.schema = *schema;
  request.format.param = "output_config.format.schema";
}

}  // namespace

ChatRequest read_conversation(const Fields& body) {
  ChatRequest request;
  body.array("stop_sequences");
  if (const OrderedJson* metadata = body.object("metadata")) {
    Fields(*metadata, "metadata").text("user_id");
  }
  read_messages(body, request);
  read_tools(body, request);
  read_thinking(body, request);
  return request;
}

}  // namespace sluice
