// The bytes of one GGUF file -> metadata and tensors, with every length checked against the file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/gguf.h"

namespace sluice {

struct GgufContent {
  std::vector<std::pair<std::string_view, GgufValue>> metadata;
  std::vector<TensorView> tensors;
};

/// `where` (a file name) starts every message. Time and memory are linear in the size of the
/// header.
GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& where);

/// Bytes of one item, 0 for strings and arrays.
size_t gguf_item_bytes(GgufType type);

}  // namespace sluice
