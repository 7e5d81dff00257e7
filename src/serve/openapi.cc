#include <initializer_list>
#include <utility>

#include "serve/api.h"

namespace sluice {
namespace {

OrderedJson number(double low, double high) {
  return {{"type", "number"}, {"minimum", low}, {"maximum", high}};
}
OrderedJson integer(int low) { return {{"type", "integer"}, {"minimum", low}}; }
OrderedJson of_type(const char* type) { return {{"type", type}}; }

/// What both completion endpoints take.
OrderedJson common_properties() {
  return {{"model", of_type("string")},
          {"stream", of_type("boolean")},
          {"stream_options", of_type("object")},
          {"temperature", number(0, 2)},
          {"top_p", number(0, 1)},
          {"top_k", integer(0)},
          {"min_p", number(0, 1)},
          {"typical_p", number(0, 1)},
          {"repetition_penalty", number(0.01, 100)},
          {"presence_penalty", number(-2, 2)},
          {"frequency_penalty", number(-2, 2)},
          {"logit_bias", of_type("object")},
          {"n", integer(1)},
          {"seed", of_type("integer")},
          {"stop", {{"type", {"string", "array"}}}},
          {"ignore_eos", of_type("boolean")},
          {"min_tokens", integer(0)},
          {"service_tier",
           {{"enum", {"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}}}}};
}

OrderedJson post(const char* summary, const char* required, OrderedJson properties) {
  OrderedJson schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (required != nullptr) schema["required"] = OrderedJson::array({required});
  const OrderedJson content = {{"application/json", {{"schema", schema}}}};
  OrderedJson responses = {
      {"200", {{"description", "An object, or with stream a stream of server-sent events."}}}};
  for (const char* status : {"400", "401", "404", "413", "415", "429", "503"}) {
    responses[status] = {{"$ref", "#/components/responses/Error"}};
  }
  return {{"post",
           {{"summary", summary},
            {"requestBody", {{"required", required != nullptr}, {"content", content}}},
            {"responses", std::move(responses)}}}};
}

OrderedJson get(const char* summary) {
  return {{"get", {{"summary", summary}, {"responses", {{"200", {{"description", summary}}}}}}}};
}

OrderedJson chat_path() {
  OrderedJson properties = common_properties();
  properties["messages"] = {{"type", "array"}, {"minItems", 1}, {"items", of_type("object")}};
  properties["max_completion_tokens"] = integer(1);
  properties["max_tokens"] = integer(1);
  properties["logprobs"] = of_type("boolean");
  properties["top_logprobs"] = {{"type", "integer"}, {"minimum", 0}, {"maximum", 20}};
  properties["tools"] = {{"type", "array"}, {"items", of_type("object")}};
  properties["tool_choice"] = {{"enum", {"auto", "none"}}};
  properties["reasoning_effort"] = {
      {"enum", {"none", "minimal", "low", "medium", "high", "xhigh", "max"}}};
  return post("Answers a conversation.", "messages", std::move(properties));
}

OrderedJson completion_path() {
  OrderedJson properties = common_properties();
  properties["prompt"] = {{"type", {"string", "array"}}};
  properties["max_tokens"] = integer(0);
  properties["echo"] = of_type("boolean");
  properties["logprobs"] = {{"type", "integer"}, {"minimum", 0}, {"maximum", 20}};
  properties["best_of"] = integer(1);
  return post("Continues a text.", "prompt", std::move(properties));
}

OrderedJson embeddings_path() {
  return post("Turns texts into vectors.", "input",
              {{"model", of_type("string")},
               {"input", {{"type", {"string", "array"}}}},
               {"encoding_format", {{"enum", {"float", "base64"}}}},
               {"dimensions", integer(1)},
               {"pooling", {{"enum", {"mean", "last"}}}}});
}

/// What a message and the count of its tokens take.
OrderedJson conversation_properties() {
  const OrderedJson text_or_blocks = {{"type", {"string", "array"}}};
  return {{"model", of_type("string")},
          {"system", text_or_blocks},
          {"messages", {{"type", "array"}, {"minItems", 1}, {"items", of_type("object")}}},
          {"tools", {{"type", "array"}, {"items", of_type("object")}}},
          {"tool_choice", of_type("object")},
          {"thinking", of_type("object")},
          {"output_config", of_type("object")}};
}

OrderedJson message_path() {
  OrderedJson properties = conversation_properties();
  properties["max_tokens"] = integer(1);
  properties["stream"] = of_type("boolean");
  properties["stop_sequences"] = {{"type", "array"}, {"items", of_type("string")}};
  properties["temperature"] = number(0, 2);
  properties["top_p"] = number(0, 1);
  properties["top_k"] = integer(0);
  OrderedJson path = post("Answers a conversation in Anthropic's form.", "messages", properties);
  path["post"]["requestBody"]["content"]["application/json"]["schema"]["required"].push_back(
      "max_tokens");
  return path;
}

OrderedJson responses_path() {
  OrderedJson properties = common_properties();
  for (const char* key : {"n", "stop"}) properties.erase(key);
  properties["input"] = {{"type", {"string", "array"}}};
  properties["instructions"] = of_type("string");
  properties["max_output_tokens"] = integer(1);
  properties["tools"] = {{"type", "array"}, {"items", of_type("object")}};
  properties["tool_choice"] = {{"type", {"string", "object"}}};
  properties["parallel_tool_calls"] = of_type("boolean");
  properties["text"] = of_type("object");
  properties["reasoning"] = of_type("object");
  properties["include"] = {{"type", "array"}, {"items", of_type("string")}};
  properties["top_logprobs"] = {{"type", "integer"}, {"minimum", 0}, {"maximum", 20}};
  properties["truncation"] = {{"enum", {"auto", "disabled"}}};
  properties["context_management"] = {{"type", "array"}, {"items", of_type("object")}};
  properties["metadata"] = of_type("object");
  properties["store"] = of_type("boolean");
  properties["background"] = of_type("boolean");
  properties["previous_response_id"] = of_type("string");
  return post("Answers a conversation of items.", "input", std::move(properties));
}

OrderedJson with_id(OrderedJson path) {
  path["parameters"] = OrderedJson::array(
      {{{"name", "id"}, {"in", "path"}, {"required", true}, {"schema", of_type("string")}}});
  return path;
}

OrderedJson stored_response_path() {
  OrderedJson path = get("A stored response; with ?stream=true the events of a background one.");
  path["delete"] = {{"summary", "Deletes it."},
                    {"responses", {{"200", {{"description", "It is deleted."}}}}}};
  return with_id(std::move(path));
}

OrderedJson error_response() {
  const OrderedJson nullable = {{"type", {"string", "null"}}};
  const OrderedJson error = {{"type", "object"},
                             {"required", {"message", "type", "param", "code"}},
                             {"properties",
                              {{"message", of_type("string")},
                               {"type", of_type("string")},
                               {"param", nullable},
                               {"code", nullable}}}};
  const OrderedJson schema = {{"type", "object"},
                              {"required", OrderedJson::array({"error"})},
                              {"properties", {{"error", error}}}};
  return {{"description", "What was wrong; `param` names the field."},
          {"content", {{"application/json", {{"schema", schema}}}}}};
}

}  // namespace

std::string openapi_document() {
  OrderedJson model = get("One model.");
  model["get"]["parameters"] = OrderedJson::array(
      {{{"name", "model"}, {"in", "path"}, {"required", true}, {"schema", of_type("string")}}});
  const OrderedJson document = {
      {"openapi", "3.1.0"},
      {"info", {{"title", "Sluice"}, {"version", "1"}}},
      {"security", OrderedJson::array({{{"bearer", OrderedJson::array()}}})},
      {"paths",
       {{"/v1/chat/completions", chat_path()},
        {"/v1/completions", completion_path()},
        {"/v1/embeddings", embeddings_path()},
        {"/v1/messages", message_path()},
        {"/v1/messages/count_tokens",
         post("Counts the tokens of a conversation.", "messages", conversation_properties())},
        {"/v1/responses", responses_path()},
        {"/v1/responses/{id}", stored_response_path()},
        {"/v1/responses/{id}/cancel",
         with_id(post("Cancels a background response.", nullptr, OrderedJson::object()))},
        {"/v1/responses/{id}/input_items", with_id(get("The items of a response's request."))},
        {"/v1/responses/input_tokens",
         post("Counts the tokens of an input.", "input", OrderedJson::object())},
        {"/v1/responses/compact",
         post("Shortens a conversation to a summary.", "model", OrderedJson::object())},
        {"/v1/models", get("The models.")},
        {"/v1/models/{model}", model},
        {"/v1/plan", get("The plan that runs, and where the time of each stage went.")},
        {"/health", get("loading, ready or draining.")},
        {"/metrics", get("Counters in the text format of Prometheus.")},
        {"/openapi.json", get("This document.")}}},
      {"components",
       {{"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}},
        {"responses", {{"Error", error_response()}}}}}};
  return dump(document);
}

}  // namespace sluice
