#include "serve/chat_constraints.h"

#include <algorithm>

#include "text/grammar_mask.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

constexpr size_t kMaxEntries = 32;
constexpr int64_t kMaxNodes = 500'000;  // of all grammars that are kept

}  // namespace

ConstraintCache::ConstraintCache(const Tokenizer& tokenizer, int64_t vocab_size,
                                 std::vector<Token> end_tokens)
    : tokenizer_(tokenizer), vocab_size_(int32_t(vocab_size)), end_tokens_(std::move(end_tokens)) {}

VocabularyPtr ConstraintCache::vocabulary() {
  std::call_once(vocabulary_once_, [this] {
    vocabulary_ = std::make_shared<VocabularyTrie>(tokenizer_, vocab_size_, end_tokens_);
  });
  return vocabulary_;
}

ConstraintPtr ConstraintCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&key](const auto& entry) { return entry.first == key; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().second;
}

ConstraintPtr ConstraintCache::get(const std::string& key, const std::function<Grammar()>& make) {
  if (ConstraintPtr known = find(key)) return known;
  const ConstraintPtr compiled = compile_grammar(make(), vocabulary());
  const std::lock_guard lock(mutex_);
  entries_.emplace_front(key, compiled);
  int64_t n_nodes = 0;
  size_t n_kept = 0;
  for (const auto& [_, kept] : entries_) {
    n_nodes += kept->grammar().n_nodes();
    if (n_nodes > kMaxNodes || n_kept == kMaxEntries) break;
    ++n_kept;
  }
  entries_.resize(std::max<size_t>(n_kept, 1));
  return compiled;
}

}  // namespace sluice
