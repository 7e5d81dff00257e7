// Names within URLs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// A segment of a path with its %XX decoded; a '%' that begins none stays.
std::string decode_segment(std::string_view segment);

/// The decoded value of `key` in a query ("a=b&c=d"). A '+' is one.
std::optional<std::string> query_value(std::string_view query, std::string_view key);

}  // namespace sluice
