// JSON with bounded depth and errors that name the file and the field.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Parses `text`; `what` (a file name) starts every error message. Accepts the bare tokens
/// Infinity, -Infinity and NaN, which Python writes. Throws kInvalidInput beyond 256 levels.
Json parse_json(std::string_view text, std::string_view what);
/// As above, keeping the order of keys.
OrderedJson parse_ordered_json(std::string_view text, std::string_view what);

/// Calls f(c) for every character of a JSON text that is outside its strings; the text need not be
/// valid.
template <typename F>
void for_each_outside_strings(std::string_view text, F&& f) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      f(text[i]);
    }
  }
}

/// A JSON object with the name of where it came from; getters throw errors that name both.
class Config {
 public:
  Config(Json object, std::string what);

  bool has(std::string_view key) const;  // present and not null
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  Config object(std::string_view key) const;
  /// An integer in [low, high]; use for every size that later becomes memory.
  int64_t integer_in(std::string_view key, int64_t low, int64_t high) const;

  const Json& json() const { return object_; }
  const std::string& what() const { return what_; }

 private:
  const Json* find(std::string_view key) const;
  const Json& require(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected, const Json& got) const;

  Json object_;
  std::string what_;
};

}  // namespace sluice
