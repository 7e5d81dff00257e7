#include "serve/response_events.h"

#include <utility>

#include "serve/openai.h"
#include "serve/response_items.h"

namespace sluice {
namespace {

constexpr const char* kServerError = "server_error";
constexpr const char* kBadRequest = "invalid_prompt";

OrderedJson score_json(const Tokenizer& tokenizer, Token token, float logprob) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : tokenizer.token_bytes(token)) bytes.push_back(uint8_t(c));
  return {{"token", token_text(tokenizer, token)}, {"logprob", logprob}, {"bytes", bytes}};
}

OrderedJson usage_json(const ChatUsage& usage) {
  return {
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

OrderedJson output_text(const std::string& text, const OrderedJson& scores) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", OrderedJson::array()},
          {"logprobs", scores}};
}

}  // namespace

OrderedJson to_json(const GenerationError& error) {
  const char* code = kServerError;
  if (error.cause == GenerationError::Cause::kRequest) code = kBadRequest;
  if (error.cause == GenerationError::Cause::kShutdown) code = kDraining;
  return {{"code", code}, {"message", error.message}};
}

GenerationError to_error(const OrderedJson& json) {
  GenerationError error{json["message"]};
  if (json["code"] == kBadRequest) error.cause = GenerationError::Cause::kRequest;
  if (json["code"] == kDraining) error.cause = GenerationError::Cause::kShutdown;
  return error;
}

ResponseBuilder::ResponseBuilder(const ResponseRequest& request, const Tokenizer& tokenizer,
                                 Emit emit)
    : tools_(request.tools),
      scored_(request.scored),
      seal_reasoning_(request.seal_reasoning),
      tokenizer_(tokenizer),
      emit_(std::move(emit)),
      resource_(request.resource) {}

void ResponseBuilder::send(const char* type, OrderedJson fields, bool is_last) {
  OrderedJson event = {{"type", type}, {"sequence_number", next_number_}};
  for (auto& [key, value] : fields.items()) event[key] = std::move(value);
  emit_({next_number_++, type, dump(event), is_last});
}

void ResponseBuilder::send_state(const char* type, bool is_last) {
  send(type, {{"response", resource_}}, is_last);
}

void ResponseBuilder::begin() {
  send_state("response.created");
  send_state(resource_["status"] == "queued" ? "response.queued" : "response.in_progress");
}

ResponseEvent ResponseBuilder::sign_of_life() {
  OrderedJson shown = resource_;
  shown["status"] = "in_progress";
  const OrderedJson event = {{"type", "response.in_progress"},
                             {"sequence_number", next_number_},
                             {"response", std::move(shown)}};
  return {next_number_++, "response.in_progress", dump(event)};
}

/// Where the open item is.
OrderedJson ResponseBuilder::place() const {
  const OrderedJson& output = resource_["output"];
  return {{"item_id", output.back()["id"]}, {"output_index", output.size() - 1}};
}

void ResponseBuilder::leave_queue() {
  if (resource_["status"] != "queued") return;
  resource_["status"] = "in_progress";
  send_state("response.in_progress");
}

void ResponseBuilder::add_item(OrderedJson item) {
  leave_queue();
  const OrderedJson fields = {{"output_index", resource_["output"].size()}, {"item", item}};
  resource_["output"].push_back(std::move(item));
  send("response.output_item.added", fields);
  send("response.output_item.done", fields);
}

void ResponseBuilder::take(const ChatPiece& piece) {
  leave_queue();
  if (scored_) pending_.insert(pending_.end(), piece.scores.begin(), piece.scores.end());
  for (const ChatDelta& delta : piece.deltas) {
    switch (delta.kind) {
      case ChatDelta::Kind::kReasoning:
        if (part_ != Part::kReasoning) open_reasoning();
        add_text(delta.text);
        break;
      case ChatDelta::Kind::kText:
        if (part_ != Part::kMessage) open_message();
        add_text(delta.text);
        break;
      case ChatDelta::Kind::kCallBegin:
        open_call(delta);
        break;
      case ChatDelta::Kind::kArguments:
        add_arguments(delta.text);
        break;
      case ChatDelta::Kind::kCallEnd:
        close("completed");
        break;
    }
  }
  if (piece.finish != ChatFinish::kNone) finish_ = piece.finish;
}

void ResponseBuilder::open(Part part, OrderedJson item) {
  close("completed");
  part_ = part;
  text_.clear();
  scores_ = OrderedJson::array();
  resource_["output"].push_back(std::move(item));
  send("response.output_item.added",
       {{"output_index", resource_["output"].size() - 1}, {"item", this->item()}});
}

/// Reasoning is streamed as a summary: the form that all clients know.
void ResponseBuilder::open_reasoning() {
  open(Part::kReasoning, {{"id", make_id("rs_")},
                          {"type", "reasoning"},
                          {"summary", OrderedJson::array()},
                          {"status", "in_progress"}});
  OrderedJson event = place();
  event["summary_index"] = 0;
  event["part"] = {{"type", "summary_text"}, {"text", ""}};
  send("response.reasoning_summary_part.added", std::move(event));
}

void ResponseBuilder::open_message() {
  open(Part::kMessage, {{"id", make_id("msg_")},
                        {"type", "message"},
                        {"status", "in_progress"},
                        {"role", "assistant"},
                        {"content", OrderedJson::array()}});
  OrderedJson event = place();
  event["content_index"] = 0;
  event["part"] = output_text("", scores_);
  send("response.content_part.added", std::move(event));
}

void ResponseBuilder::open_call(const ChatDelta& delta) {
  is_custom_ = delta.is_custom;
  const ResponseToolName name = tools_.client_name(delta.name);
  OrderedJson call = {{"id", make_id(is_custom_ ? "ctc_" : "fc_")},
                      {"type", is_custom_ ? "custom_tool_call" : "function_call"},
                      {"status", "in_progress"},
                      {"call_id", delta.id},
                      {"name", name.name},
                      {is_custom_ ? "input" : "arguments", ""}};
  if (!name.space.empty()) call["namespace"] = name.space;
  open(Part::kCall, std::move(call));
}

void ResponseBuilder::add_text(const std::string& text) {
  text_ += text;
  OrderedJson event = place();
  event[part_ == Part::kReasoning ? "summary_index" : "content_index"] = 0;
  event["delta"] = text;
  if (part_ == Part::kReasoning) {
    pending_.clear();
    return send("response.reasoning_summary_text.delta", std::move(event));
  }
  event["logprobs"] = take_scores();
  send("response.output_text.delta", std::move(event));
}

/// The pending scores, which become the message's.
OrderedJson ResponseBuilder::take_scores() {
  OrderedJson list = OrderedJson::array();
  for (const ScoredToken& score : pending_) {
    OrderedJson entry = score_json(tokenizer_, score.token, score.logprob);
    entry["top_logprobs"] = OrderedJson::array();
    for (const TokenScore& other : score.top) {
      entry["top_logprobs"].push_back(score_json(tokenizer_, other.token, other.logprob));
    }
    scores_.push_back(entry);
    list.push_back(std::move(entry));
  }
  pending_.clear();
  return list;
}

void ResponseBuilder::add_arguments(const std::string& text) {
  if (part_ != Part::kCall) return;
  pending_.clear();
  text_ += text;
  OrderedJson event = place();
  event["delta"] = text;
  send(is_custom_ ? "response.custom_tool_call_input.delta"
                  : "response.function_call_arguments.delta",
       std::move(event));
}

void ResponseBuilder::close(const char* status) {
  if (part_ == Part::kNone) return;
  if (part_ == Part::kReasoning) close_reasoning();
  if (part_ == Part::kMessage) close_message();
  if (part_ == Part::kCall) close_call();
  part_ = Part::kNone;
  item()["status"] = status;
  send("response.output_item.done",
       {{"output_index", resource_["output"].size() - 1}, {"item", item()}});
}

void ResponseBuilder::close_reasoning() {
  const OrderedJson part = {{"type", "summary_text"}, {"text", text_}};
  item()["summary"] = OrderedJson::array({part});
  if (seal_reasoning_) item()["encrypted_content"] = seal_text(text_);
  OrderedJson event = place();
  event["summary_index"] = 0;
  OrderedJson last = event;
  event["text"] = text_;
  send("response.reasoning_summary_text.done", std::move(event));
  last["part"] = part;
  send("response.reasoning_summary_part.done", std::move(last));
}

void ResponseBuilder::close_message() {
  take_scores();
  const OrderedJson part = output_text(text_, scores_);
  item()["content"] = OrderedJson::array({part});
  OrderedJson event = place();
  event["content_index"] = 0;
  OrderedJson last = event;
  event["text"] = text_;
  event["logprobs"] = scores_;
  send("response.output_text.done", std::move(event));
  last["part"] = part;
  send("response.content_part.done", std::move(last));
}

void ResponseBuilder::close_call() {
  const char* key = is_custom_ ? "input" : "arguments";
  item()[key] = text_;
  OrderedJson event = place();
  if (!is_custom_) event["name"] = item()["name"];
  event[key] = text_;
  send(
      is_custom_ ? "response.custom_tool_call_input.done" : "response.function_call_arguments.done",
      std::move(event));
}

void ResponseBuilder::finish(const char* status) {
  resource_["status"] = status;
  if (resource_["status"] == "completed") resource_["completed_at"] = unix_seconds();
}

void ResponseBuilder::end(const GenerationError& error, const ChatUsage& usage) {
  const bool cut = finish_ == ChatFinish::kLength;
  if (error.empty() && resource_["output"].empty()) open_message();
  close(error.empty() && !cut ? "completed" : "incomplete");
  resource_["usage"] = usage_json(usage);
  if (!error.empty()) {
    resource_["error"] = to_json(error);
    finish("failed");
    return send_state("response.failed", true);
  }
  if (cut) resource_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  finish(cut ? "incomplete" : "completed");
  send_state(cut ? "response.incomplete" : "response.completed", true);
}

void ResponseBuilder::complete(ChatUsage usage) {
  usage.completion_tokens = 0;
  resource_["usage"] = usage_json(usage);
  finish("completed");
  send_state("response.completed", true);
}

void ResponseBuilder::cancel() {
  close("incomplete");
  finish("cancelled");
}

}  // namespace sluice
