// The fields of a request's JSON body, with errors that name the parameter.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/json.h"
#include "serve/http.h"

namespace sluice {

/// A request that cannot be served, as the client will see it.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "",
           std::string type = "invalid_request_error");
  HttpResponse response() const;
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string param_, code_, type_;
};

/// Parses a body that must be a JSON object. Throws ApiError.
OrderedJson parse_body(const std::string& body);

/// Getters throw ApiError (400) for values of another type or outside the range. An absent field
/// and null are the same; unknown fields are nobody's concern.
class Fields {
 public:
  /// `path` is where the object is within the body, e.g. "messages[0]". `object` must live on.
  explicit Fields(const OrderedJson& object, std::string path = "");

  const OrderedJson* find(std::string_view key) const;  // nullptr: absent or null
  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> number(std::string_view key, double low, double high) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::optional<std::string> text(std::string_view key) const;
  std::string required_text(std::string_view key) const;
  std::optional<std::string> choice(std::string_view key,
                                    std::initializer_list<std::string_view> allowed) const;
  std::string required_choice(std::string_view key,
                              std::initializer_list<std::string_view> allowed) const;
  const OrderedJson* array(std::string_view key) const;   // nullptr: absent
  const OrderedJson* object(std::string_view key) const;  // nullptr: absent

  std::string path(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, const std::string& expected) const;

 private:
  const OrderedJson& object_;
  std::string path_;
};

}  // namespace sluice
