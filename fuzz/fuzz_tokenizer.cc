// A tokenizer.json and, after a NUL, a text: loading, encoding, decoding.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t split = input.find('\0');
  const std::string_view text = split == std::string_view::npos
                                    ? "It's caf\xC3\xA9 <s> 123\n\n \xE6\xBC"
                                    : input.substr(split + 1);
  try {
    const auto tokenizer = Tokenizer::from_json(input.substr(0, split), "fuzz.json");
    for (const bool parse_special : {true, false}) {
      const auto ids = tokenizer->encode(text, true, parse_special);
      tokenizer->decode(ids);
      tokenizer->decode(ids, true);
    }
    tokenizer->token_bytes(0);
  } catch (const Error&) {
  }
  return 0;
}
