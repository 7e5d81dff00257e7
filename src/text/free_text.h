// Text in which anything may come until a marker has been read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Follows how much of the marker the text ends with (Knuth, Morris, Pratt 1977).
class FreeText {
 public:
  /// `marker`: 1 to 255 bytes.
  explicit FreeText(std::string_view marker);

  /// The bytes of the marker that were read last, after one more; marker_size() at its end.
  int32_t next(int32_t n_read, char byte) const {
    return next_[static_cast<size_t>(n_read)][static_cast<uint8_t>(byte)];
  }
  int32_t marker_size() const { return static_cast<int32_t>(next_.size()); }

 private:
  std::vector<std::array<uint8_t, 256>> next_;
};

}  // namespace sluice
