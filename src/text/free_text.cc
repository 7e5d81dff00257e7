#include "text/free_text.h"

#include "base/error.h"

namespace sluice {

FreeText::FreeText(std::string_view marker) : next_(marker.size()) {
  CHECK(!marker.empty() && marker.size() <= 255);
  for (size_t n = 0; n < marker.size(); ++n) {
    for (size_t byte = 0; byte < 256; ++byte) {
      std::string read = std::string(marker.substr(0, n)) + static_cast<char>(byte);
      while (!marker.starts_with(read)) read.erase(0, 1);
      next_[n][byte] = static_cast<uint8_t>(read.size());
    }
  }
}

}  // namespace sluice
