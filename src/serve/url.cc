#include "serve/url.h"

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

}  // namespace sluice
