// The constraints of chat answers: compiled on the caller's thread, kept for requests that come
// again.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "text/constraint.h"

namespace sluice {

class Tokenizer;

/// Thread-safe.
class ConstraintCache {
 public:
  /// `tokenizer` must live on; `vocab_size`: rows of logits.
  ConstraintCache(const Tokenizer& tokenizer, int64_t vocab_size, std::vector<Token> end_tokens);

  /// What `make` returns, or what it returned for the same `key`.
  ConstraintPtr get(const std::string& key, const std::function<Grammar()>& make);
  /// Made at the first use.
  VocabularyPtr vocabulary();

 private:
  ConstraintPtr find(const std::string& key);

  const Tokenizer& tokenizer_;
  int32_t vocab_size_;
  std::vector<Token> end_tokens_;
  std::once_flag vocabulary_once_;
  VocabularyPtr vocabulary_;
  std::mutex mutex_;
  std::list<std::pair<std::string, ConstraintPtr>> entries_;  // the latest first
};

}  // namespace sluice
