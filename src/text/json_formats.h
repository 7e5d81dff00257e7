// The values of JSON Schema's "format" as regular expressions.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// A pattern all of whose matches have the format; empty: unknown. February has 28 days, leap
/// seconds do not exist, host names are ASCII.
std::string_view format_pattern(std::string_view format);
/// The known names, for error messages.
std::string format_names();

}  // namespace sluice
