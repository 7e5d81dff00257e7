#include "text/json_node.h"

namespace sluice {

bool JsonNode::has(std::string_view key) const {
  if (!json_->is_object()) return false;
  const auto it = json_->find(key);
  return it != json_->end() && !it->is_null();
}

JsonNode JsonNode::at(std::string_view key) const {
  object();
  const std::string path = where_ + (where_.ends_with(": ") ? "" : ".") + std::string(key);
  const auto it = json_->find(key);
  if (it == json_->end()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected a value, got nothing", path);
  }
  return {*it, path};
}

JsonNode JsonNode::at(size_t index) const {
  return {(*json_)[index], fmt::format("{}[{}]", where_, index)};
}

size_t JsonNode::array_size() const {
  if (!json_->is_array()) fail("an array");
  return json_->size();
}

const JsonNode& JsonNode::object() const {
  if (!json_->is_object()) fail("an object");
  return *this;
}

std::string JsonNode::text() const {
  if (!json_->is_string()) fail("a string");
  return json_->get<std::string>();
}

int64_t JsonNode::integer() const {
  if (!json_->is_number_integer()) fail("an integer");
  if (json_->is_number_unsigned() && json_->get<uint64_t>() > INT64_MAX) fail("a smaller integer");
  return json_->get<int64_t>();
}

double JsonNode::number() const {
  if (!json_->is_number()) fail("a number");
  return json_->get<double>();
}

bool JsonNode::boolean() const {
  if (!json_->is_boolean()) fail("true or false");
  return json_->get<bool>();
}

std::string JsonNode::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? at(key).text() : std::string(fallback);
}

int64_t JsonNode::integer(std::string_view key, int64_t fallback) const {
  return has(key) ? at(key).integer() : fallback;
}

bool JsonNode::boolean(std::string_view key, bool fallback) const {
  return has(key) ? at(key).boolean() : fallback;
}

void JsonNode::fail(std::string_view expected) const {
  std::string got = json_->is_structured()
                        ? std::string(json_->type_name())
                        : json_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (got.size() > 60) got = got.substr(0, 60) + "...";
  throw Error(ErrorCode::kInvalidInput, "{}: expected {}, got {}", where_, expected, got);
}

}  // namespace sluice
