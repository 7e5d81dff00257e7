// A place in a parsed JSON file, with typed access whose errors name the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

/// Refers to the document, which must outlive it: nothing is copied.
class JsonNode {
 public:
  JsonNode(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const Json& json() const { return *json_; }
  /// "tokenizer.json: model.vocab"
  const std::string& where() const { return where_; }

  bool has(std::string_view key) const;  // present and not null
  JsonNode at(std::string_view key) const;
  JsonNode at(size_t index) const;
  /// Checks that this is an array / object and returns its size.
  size_t array_size() const;
  const JsonNode& object() const;

  std::string text() const;
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::string text(std::string_view key) const { return at(key).text(); }
  std::string text(std::string_view key, std::string_view fallback) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  bool boolean(std::string_view key, bool fallback) const;

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const Json* json_;
  std::string where_;
};

}  // namespace sluice
