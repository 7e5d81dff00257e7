#include "serve/url.h"

#include <algorithm>
#include <charconv>

namespace sluice {

std::string decode_segment(std::string_view segment) {
  std::string text;
  for (size_t i = 0; i < segment.size(); ++i) {
    const std::string_view digits = segment.substr(i + 1, 2);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool is_byte =
        segment[i] == '%' && digits.size() == 2 && error == std::errc() && end == digits.data() + 2;
    text += is_byte ? char(byte) : segment[i];
    if (is_byte) i += 2;
  }
  return text;
}

std::optional<std::string> query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    const size_t name_end = pair.find('=');
    if (name_end != pair.npos && pair.substr(0, name_end) == key) {
      return decode_segment(pair.substr(name_end + 1));
    }
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  return std::nullopt;
}

}  // namespace sluice
