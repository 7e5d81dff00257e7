#include "serve/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

/// Objects that keep the order of their keys look them up one by one.
constexpr int kMaxKeys = 2000;
constexpr size_t kMaxShown = 60;

/// Counts the keys of every object before any is built.
void check_object_sizes(std::string_view text) {
  std::vector<int> n_keys = {0};
  for_each_outside_strings(text, [&](char c) {
    if (c == '{' || c == '[') {
      n_keys.push_back(0);
    } else if ((c == '}' || c == ']') && n_keys.size() > 1) {
      n_keys.pop_back();
    } else if (c == ':' && ++n_keys.back() > kMaxKeys) {
      throw ApiError(400, fmt::format("An object has more than {} keys.", kMaxKeys));
    }
  });
}

std::string shown(const OrderedJson& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  std::string text = value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown - 3) + "...";
  return text;
}

}  // namespace

ApiError::ApiError(int status, const std::string& message, std::string param, std::string code,
                   std::string type)
    : std::runtime_error(message),
      status_(status),
      param_(std::move(param)),
      code_(std::move(code)),
      type_(std::move(type)) {}

HttpResponse ApiError::response() const {
  return http_error(status_, what(), type_, param_, code_);
}

OrderedJson parse_body(const std::string& body) {
  check_object_sizes(body);
  OrderedJson json;
  try {
    json = parse_ordered_json(body, "The body of the request");
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
  if (!json.is_object()) {
    throw ApiError(400, "The body of the request: expected a JSON object, got " + shown(json));
  }
  return json;
}

Fields::Fields(const OrderedJson& object, std::string path)
    : object_(object), path_(std::move(path)) {
  if (!object.is_object()) {
    throw ApiError(400, fmt::format("{}: expected an object, got {}", path_, shown(object)), path_);
  }
}

std::string Fields::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Fields::fail(std::string_view key, const std::string& expected) const {
  const OrderedJson* value = find(key);
  throw ApiError(400,
                 fmt::format("{}: expected {}, got {}", path(key), expected,
                             value == nullptr ? "nothing" : shown(*value)),
                 path(key));
}

const OrderedJson* Fields::find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<int64_t> Fields::integer(std::string_view key, int64_t low, int64_t high) const {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool whole = value->is_number_integer() &&
                     !(value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX));
  if (!whole || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    fail(key, fmt::format("an integer from {} to {}", low, high));
  }
  return value->get<int64_t>();
}

std::optional<double> Fields::number(std::string_view key, double low, double high) const {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= low && number <= high)) {
    fail(key, fmt::format("a number from {} to {}", low, high));
  }
  return number;
}

bool Fields::boolean(std::string_view key, bool fallback) const {
  const OrderedJson* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> Fields::text(std::string_view key) const {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "a string");
  return value->get<std::string>();
}

std::string Fields::required_text(std::string_view key) const {
  if (find(key) == nullptr) fail(key, "a string");
  return *text(key);
}

std::optional<std::string> Fields::choice(std::string_view key,
                                          std::initializer_list<std::string_view> allowed) const {
  if (find(key) == nullptr) return std::nullopt;
  return required_choice(key, allowed);
}

std::string Fields::required_choice(std::string_view key,
                                    std::initializer_list<std::string_view> allowed) const {
  const std::optional<std::string> value = text(key);
  for (const std::string_view name : allowed) {
    if (value == name) return *value;
  }
  fail(key, fmt::format("one of {}", fmt::join(allowed, ", ")));
}

const OrderedJson* Fields::array(std::string_view key) const {
  const OrderedJson* value = find(key);
  if (value != nullptr && !value->is_array()) fail(key, "an array");
  return value;
}

const OrderedJson* Fields::object(std::string_view key) const {
  const OrderedJson* value = find(key);
  if (value != nullptr && !value->is_object()) fail(key, "an object");
  return value;
}

}  // namespace sluice
