// Names within the paths of URLs.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// A segment of a path with its %XX decoded; a '%' that begins none stays.
std::string decode_segment(std::string_view segment);

}  // namespace sluice
