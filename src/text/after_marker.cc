#include "text/after_marker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

class AfterMarker : public TokenConstraint {
 public:
  AfterMarker(std::string marker, VocabularyPtr vocabulary, std::unique_ptr<TokenConstraint> rest)
      : marker_(std::move(marker)), vocabulary_(std::move(vocabulary)), rest_(std::move(rest)) {}

  void allowed(std::vector<uint32_t>& bits) override {
    if (n_free_ < 0) return bits.assign(vocabulary_->n_words(), ~0u);
    rest_->allowed(bits);
  }
  bool accept(Token token) override;
  void rollback(int n) override;

 private:
  std::string marker_;
  VocabularyPtr vocabulary_;
  std::unique_ptr<TokenConstraint> rest_;
  std::vector<Token> tokens_;
  int64_t n_free_ = -1;  // tokens up to the marker's end; -1: it has not come
};

bool AfterMarker::accept(Token token) {
  if (n_free_ >= 0 && !rest_->accept(token)) return false;
  tokens_.push_back(token);
  if (n_free_ >= 0) return true;
  std::string tail;
  for (auto it = tokens_.rbegin(); it != tokens_.rend() && tail.size() < marker_.size(); ++it) {
    tail.insert(0, vocabulary_->token_text(*it));
  }
  if (tail.ends_with(marker_)) n_free_ = int64_t(tokens_.size());
  return true;
}

void AfterMarker::rollback(int n) {
  CHECK(n >= 0 && static_cast<size_t>(n) <= tokens_.size());
  const int64_t left = int64_t(tokens_.size()) - n;
  if (n_free_ >= 0) {
    rest_->rollback(int(int64_t(tokens_.size()) - std::max(left, n_free_)));
    if (left < n_free_) n_free_ = -1;
  }
  tokens_.resize(size_t(left));
}

}  // namespace

std::unique_ptr<TokenConstraint> constrain_after_marker(std::string marker,
                                                        VocabularyPtr vocabulary,
                                                        std::unique_ptr<TokenConstraint> rest) {
  return std::make_unique<AfterMarker>(std::move(marker), std::move(vocabulary), std::move(rest));
}

}  // namespace sluice
