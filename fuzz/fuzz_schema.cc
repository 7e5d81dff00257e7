// A JSON schema, and the same text as a regular expression: compiling, then following a few tokens.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "text/constraint.h"

namespace {

using namespace sluice;

VocabularyPtr vocabulary() {
  std::vector<std::string> texts{"</s>", "{\"", "\":", ", \"", "\"}", "abc", "12", "é", "true"};
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  return std::make_shared<VocabularyTrie>(texts, std::vector<int32_t>{0});
}

template <typename F>
void follow(F compile) {
  try {
    const std::unique_ptr<TokenConstraint> constraint = start_constraint(compile());
    std::vector<uint32_t> bits;
    for (uint32_t step = 0; step < 30; ++step) {
      constraint->allowed(bits);
      for (uint32_t i = 0; i < bits.size() * 32; ++i) {
        const uint32_t token = (i * 37 + step * 11) % static_cast<uint32_t>(bits.size() * 32);
        if ((bits[token / 32] >> (token % 32) & 1) == 0) continue;
        if (!constraint->accept(static_cast<Token>(token))) __builtin_trap();
        break;
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const VocabularyPtr shared = vocabulary();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  follow([&] { return compile_json_schema(parse_ordered_json(text, "fuzz"), shared); });
  if (size < 1000) follow([&] { return compile_regex(text, shared); });
  return 0;
}
