#include "base/json.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kMaxDepth = 256;

/// Replaces the bare tokens Infinity, -Infinity and NaN, outside strings, by 1e999, -1e999 and
/// null.
std::string replace_python_numbers(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      if (c == '"') in_string = false;
    } else if (text.substr(i, 8) == "Infinity") {
      out += "1.7976931348623157e308";
      i += 7;
    } else if (text.substr(i, 3) == "NaN") {
      out += "null";
      i += 2;
    } else {
      in_string = c == '"';
      out += c;
    }
  }
  return out;
}

void check_depth(std::string_view text, std::string_view what) {
  int depth = 0;
  for_each_outside_strings(text, [&](char c) {
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > kMaxDepth) {
      throw Error(ErrorCode::kInvalidInput, "{}: JSON nested deeper than {} levels", what,
                  kMaxDepth);
    }
  });
}

template <typename T>
T parse(std::string_view text, std::string_view what) {
  check_depth(text, what);
  try {
    if (text.find("Infinity") == text.npos && text.find("NaN") == text.npos) return T::parse(text);
    return T::parse(replace_python_numbers(text));
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::kInvalidInput, "{}: not valid JSON: {}", what, e.what());
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view what) { return parse<Json>(text, what); }

OrderedJson parse_ordered_json(std::string_view text, std::string_view what) {
  return parse<OrderedJson>(text, what);
}

Config::Config(Json object, std::string what) : object_(std::move(object)), what_(std::move(what)) {
  if (!object_.is_object()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected a JSON object, got {}", what_,
                object_.type_name());
  }
}

const Json* Config::find(std::string_view key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const Json& Config::require(std::string_view key) const {
  const Json* value = find(key);
  if (!value) throw Error(ErrorCode::kInvalidInput, "{}: {}: missing", what_, key);
  return *value;
}

void Config::fail(std::string_view key, std::string_view expected, const Json& got) const {
  std::string shown = got.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  throw Error(ErrorCode::kInvalidInput, "{}: {}: expected {}, got {}", what_, key, expected, shown);
}

bool Config::has(std::string_view key) const { return find(key) != nullptr; }

int64_t Config::integer(std::string_view key) const {
  const Json& value = require(key);
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
    fail(key, "an integer below 2^63", value);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::floor(number) == number && std::abs(number) < 9e15) return int64_t(number);
  }
  fail(key, "an integer", value);
}

int64_t Config::integer(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

int64_t Config::integer_in(std::string_view key, int64_t low, int64_t high) const {
  const int64_t value = integer(key);
  if (value < low || value > high) {
    fail(key, fmt::format("an integer from {} to {}", low, high), require(key));
  }
  return value;
}

double Config::number(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_number()) fail(key, "a number", value);
  return value.get<double>();
}

double Config::number(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool Config::boolean(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) fail(key, "true or false", *value);
  return value->get<bool>();
}

std::string Config::text(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_string()) fail(key, "a string", value);
  return value.get<std::string>();
}

std::string Config::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::vector<std::string> Config::texts(std::string_view key) const {
  const Json& value = require(key);
  std::vector<std::string> out;
  if (!value.is_array()) fail(key, "a list of strings", value);
  for (const Json& item : value) {
    if (!item.is_string()) fail(key, "a list of strings", value);
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<int64_t> Config::integers(std::string_view key) const {
  const Json& value = require(key);
  std::vector<int64_t> out;
  if (!value.is_array()) fail(key, "a list of integers", value);
  for (const Json& item : value) {
    if (!item.is_number_integer()) fail(key, "a list of integers", value);
    out.push_back(item.get<int64_t>());
  }
  return out;
}

Config Config::object(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_object()) fail(key, "an object", value);
  return Config(value, fmt::format("{}: {}", what_, key));
}

}  // namespace sluice
