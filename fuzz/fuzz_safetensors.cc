// A safetensors file: parsing, and reading both ends of every tensor.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const sluice::SafetensorsFile file(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
    for (const sluice::TensorView& tensor : file.tensors()) {
      if (tensor.bytes == 0) continue;
      const auto* bytes = reinterpret_cast<const volatile uint8_t*>(tensor.data);
      (void)bytes[0];
      (void)bytes[tensor.bytes - 1];
    }
  } catch (const sluice::Error&) {
  }
  return 0;
}
