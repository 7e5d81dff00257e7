#include "text/detokenizer.h"

#include <algorithm>

#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"

namespace sluice {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(&tokenizer),
      skip_special_(skip_special),
      stream_(std::make_unique<DecodeStream>(tokenizer.parts().decoders)) {}

Detokenizer::~Detokenizer() = default;
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;

void Detokenizer::follow(std::span<const int32_t> before) {
  constexpr size_t kEnough = 16;
  for (const int32_t id : before.last(std::min(before.size(), kEnough))) {
    if (!tokenizer_->is_special(id)) push(id);
  }
}

std::string Detokenizer::push(int32_t id) {
  std::string out;
  const std::string_view name = tokenizer_->parts().decoded_name(id);
  if (name.empty() || (skip_special_ && tokenizer_->is_special(id))) return out;
  stream_->push(id, name, out);
  return out;
}

std::string Detokenizer::finish() {
  std::string out;
  stream_->finish(out);
  return out;
}

}  // namespace sluice
