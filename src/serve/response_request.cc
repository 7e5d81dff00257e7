#include "serve/response_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "serve/chat_prompt.h"
#include "serve/openai.h"
#include "serve/response_context.h"

namespace sluice {
namespace {

constexpr int kMaxTopLogprobs = 20;
constexpr int64_t kMaxInt = 2147483647;

OrderedJson or_null(const OrderedJson* value) { return value == nullptr ? OrderedJson() : *value; }

OrderedJson text_or_null(const Fields& fields, const char* key) {
  fields.text(key);
  return or_null(fields.find(key));
}

OrderedJson integer_or_null(const Fields& fields, const char* key) {
  fields.integer(key, 1, kMaxInt);
  return or_null(fields.find(key));
}

/// "text": the form of the answer. The result is its echo.
OrderedJson read_text(const Fields& body, AnswerFormat& format) {
  OrderedJson echo = {{"format", {{"type", "text"}}}, {"verbosity", "medium"}};
  const OrderedJson* text = body.object("text");
  if (text == nullptr) return echo;
  const Fields fields(*text, body.path("text"));
  if (const auto verbosity = fields.choice("verbosity", {"low", "medium", "high"})) {
    echo["verbosity"] = *verbosity;
  }
  const OrderedJson* object = fields.object("format");
  if (object == nullptr) return echo;
  const Fields form(*object, fields.path("format"));
  const std::string type =
      form.choice("type", {"text", "json_object", "json_schema"}).value_or("text");
  if (type == "json_object") {
    format.kind = AnswerFormat::Kind::kJsonObject;
    format.param = form.path("type");
    echo["format"] = {{"type", type}};
  } else if (type == "json_schema") {
    const OrderedJson* schema = form.object("schema");
    if (schema == nullptr) form.fail("schema", "an object");
    format.kind = AnswerFormat::Kind::kJsonSchema;
    format.schema = *schema;
    format.param = form.path("schema");
    echo["format"] = {{"type", type},
                      {"name", form.required_text("name")},
                      {"description", text_or_null(form, "description")},
                      {"schema", *schema},
                      {"strict", form.boolean("strict", false)}};
  }
  return echo;
}

/// "reasoning"; its echo has the effort that is used.
OrderedJson read_reasoning(const Fields& body, ChatRequest& chat) {
  OrderedJson echo = {{"effort", nullptr}, {"summary", nullptr}};
  const OrderedJson* reasoning = body.object("reasoning");
  if (reasoning == nullptr) return echo;
  const Fields fields(*reasoning, body.path("reasoning"));
  fields.choice("summary", {"auto", "concise", "detailed"});
  fields.choice("mode", {"standard", "pro"});
  fields.choice("context", {"auto", "current_turn", "all_turns"});
  echo.update(*reasoning);
  chat.effort = read_effort(fields, "effort");
  return echo;
}

void refuse_unsupported(const Fields& body) {
  for (const char* key : {"conversation", "prompt"}) {
    if (body.find(key) != nullptr) {
      body.fail(key, "nothing: this server does not support it (see previous_response_id)");
    }
  }
}

void read_output_options(const Fields& body, ResponseRequest& result) {
  result.stream = body.boolean("stream", false);
  result.store = body.boolean("store", true);
  result.background = body.boolean("background", false);
  if (result.background && !result.store) body.fail("store", "true with background");
  for (const char* key : {"stream_options", "client_metadata", "prompt_cache_options"}) {
    body.object(key);
  }
  if (const OrderedJson* include = body.array("include")) {
    for (const OrderedJson& what : *include) {
      if (!what.is_string()) body.fail("include", "an array of strings");
      if (what == "reasoning.encrypted_content") result.seal_reasoning = true;
      if (what == "message.output_text.logprobs") result.scored = true;
    }
  }
  const int top = int(body.integer("top_logprobs", 0, kMaxTopLogprobs).value_or(0));
  result.scored = result.scored || top > 0;
  if (result.scored) result.chat.generation.request.sampling.n_top_logprobs = top;
}

/// What the body has, or the value that is used in its place, as the decimal it was given as.
double echo_number(const Fields& body, std::string_view key, float used) {
  return body.number(key, -INFINITY, INFINITY).value_or(std::stod(fmt::format("{}", used)));
}

/// The response object with what the request says; the order of keys is that of OpenAI's.
OrderedJson make_resource(const Fields& body, const ServedModel& model,
                          const ResponseRequest& request, const OrderedJson& text,
                          const OrderedJson& reasoning, const std::string& tier) {
  const SamplingParams& sampling = request.chat.generation.request.sampling;
  const OrderedJson* choice = body.find("tool_choice");
  return {{"id", make_id("resp_")},
          {"object", "response"},
          {"created_at", unix_seconds()},
          {"completed_at", nullptr},
          {"status", request.background ? "queued" : "in_progress"},
          {"background", request.background},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", text_or_null(body, "instructions")},
          {"max_output_tokens", integer_or_null(body, "max_output_tokens")},
          {"max_tool_calls", integer_or_null(body, "max_tool_calls")},
          {"model", model.name},
          {"output", OrderedJson::array()},
          {"parallel_tool_calls", request.chat.parallel_calls},
          {"previous_response_id", text_or_null(body, "previous_response_id")},
          {"prompt_cache_key", text_or_null(body, "prompt_cache_key")},
          {"reasoning", reasoning},
          {"safety_identifier", text_or_null(body, "safety_identifier")},
          {"service_tier", tier},
          {"store", request.store},
          {"temperature", echo_number(body, "temperature", sampling.temperature)},
          {"text", text},
          {"tool_choice", choice == nullptr ? OrderedJson("auto") : *choice},
          {"tools", ResponseTools::echo(body.array("tools"))},
          {"top_logprobs", body.integer("top_logprobs", 0, kMaxTopLogprobs).value_or(0)},
          {"top_p", echo_number(body, "top_p", sampling.top_p)},
          {"presence_penalty", echo_number(body, "presence_penalty", sampling.presence_penalty)},
          {"frequency_penalty", echo_number(body, "frequency_penalty", sampling.frequency_penalty)},
          {"truncation", body.choice("truncation", {"auto", "disabled"}).value_or("disabled")},
          {"usage", nullptr},
          {"user", text_or_null(body, "user")},
          {"metadata", read_metadata(body)}};
}

/// The number of tokens of a prompt from which on it is compacted; -1: none.
int64_t read_compaction(const Fields& body, const ServedModel& model) {
  const OrderedJson* edits = body.array("context_management");
  if (edits == nullptr) return -1;
  int64_t limit = compaction_limit(model);
  for (size_t i = 0; i < edits->size(); ++i) {
    const Fields edit((*edits)[i], fmt::format("{}[{}]", body.path("context_management"), i));
    edit.required_text("type");
    edit.choice("type", {"compaction"});
    limit = std::min(limit, edit.integer("compact_threshold", 1000, kMaxInt).value_or(limit));
  }
  return edits->empty() ? -1 : limit;
}

/// Sets what is to be compacted, if anything is.
void plan_compaction(const Fields& body, const ServedModel& model, OrderedJson items,
                     ResponseRequest& result) {
  const int64_t limit = read_compaction(body, model);
  const bool only = !items.empty() && items.back()["type"] == "compaction_trigger";
  if (limit < 0 && !only) return;
  const OrderedJson& messages = result.chat.messages;
  size_t n_waiting = n_unanswered(messages);
  if (n_waiting == messages.size()) {
    if (!only) return;
    n_waiting = 0;
  }
  if (!only && prompt_fits(result.chat, model, limit)) return;
  result.compaction = {.items = std::move(items),
                       .instructions = body.text("instructions").value_or(""),
                       .n_unanswered = n_waiting,
                       .n_kept_tokens = (limit < 0 ? compaction_limit(model) : limit) / 4,
                       .only = only};
}

}  // namespace

ResponseRequest read_response_request(const Fields& body, const ServedModel& model,
                                      OrderedJson history, const FindItem& find_item) {
  refuse_unsupported(body);
  ResponseRequest result;
  ChatRequest& chat = result.chat;
  chat.generation = read_generation(body, model);
  chat.generation.n = 1;
  const std::string tier = read_service_tier(body, chat.generation.request);
  read_output_options(body, result);
  chat.max_tokens = body.integer("max_output_tokens", 1, kMaxInt).value_or(-1);
  chat.max_calls = body.integer("max_tool_calls", 1, kMaxInt).value_or(chat.max_calls);
  chat.messages_param = "input";
  const OrderedJson text = read_text(body, chat.format);
  const OrderedJson reasoning = read_reasoning(body, chat);
  result.input = read_response_input(body, find_item);
  for (const OrderedJson& item : result.input) history.push_back(item);
  if (history.empty()) body.fail("input", "a string or an array of at least one item");
  if (const OrderedJson* tools = body.array("tools")) result.tools.add(*tools, body.path("tools"));
  add_item_tools(history, result.tools);
  result.tools.choose(body, chat);
  result.resource = make_resource(body, model, result, text, reasoning, tier);
  chat.messages =
      read_messages(response_messages(history, body.text("instructions").value_or("")), "input");
  plan_compaction(body, model, std::move(history), result);
  if (!result.compaction && result.truncates()) truncate_messages(chat, model);
  return result;
}

}  // namespace sluice
