#include "engine/drafter.h"

#include <algorithm>
#include <bit>

namespace sluice {
namespace {

constexpr double kCostDecay = 0.98;    // per batch: remembers about 50
constexpr double kDefaultCost = 0.25;  // of one row beside one, before anything was measured
constexpr double kRateDecay = 0.94;    // per try: remembers about 16
constexpr double kIncome = 0.01;       // steps per token that may be spent on guesses
constexpr double kMaxFunds = 4;
constexpr int kMaxMatch = 32;
constexpr int kMaxCandidates = 8;

}  // namespace

void RowCost::observe(int n_rows, double us) {
  if (!(us > 0)) return;
  const double rows = n_rows;
  for (double* sum : {&weight_, &rows_, &time_, &rows2_, &rows_time_}) *sum *= kCostDecay;
  weight_ += 1;
  rows_ += rows;
  time_ += us;
  rows2_ += rows * rows;
  rows_time_ += rows * us;
}

double RowCost::relative(int n_rows) const {
  const double n = std::max(n_rows, 1);
  double base = 1, slope = kDefaultCost;  // time = base + slope * rows
  const double variance = weight_ * rows2_ - rows_ * rows_;
  if (weight_ > 0 && variance > 0.01 * weight_ * weight_) {
    slope = (weight_ * rows_time_ - rows_ * time_) / variance;
    base = (time_ - slope * rows_) / weight_;
    if (slope < 0) slope = 0;
    if (base < 0) base = 0;
  }
  const double time = base + slope * n;
  return time > 0 ? std::clamp(n * slope / time, 0.02, 1.0) : 1.0;
}

int PromptLookup::bucket(int match_length) {
  return match_length <= 4 ? 0 : match_length <= 8 ? 1 : match_length <= 16 ? 2 : 3;
}

void PromptLookup::start(std::span<const Token> prompt, size_t n_expected) {
  n_expected = std::max(n_expected, prompt.size());
  tokens_.reserve(n_expected);
  previous_.reserve(n_expected + 1);
  heads_.resize(std::bit_ceil(std::max<size_t>(2 * n_expected, 256)));
  tokens_.assign(prompt.begin(), prompt.end());
  previous_.assign(tokens_.size() + 1, -1);
  rehash();
  look_up();
}

void PromptLookup::append(Token token) {
  const bool followed = follow_ >= 0;
  const bool hit = followed && token_at(follow_) == token;
  if (followed) {
    Rate& rate = rates_[static_cast<size_t>(bucket(match_length_))];
    rate.hits = rate.hits * kRateDecay + (hit ? 1 : 0);
    rate.tries = rate.tries * kRateDecay + 1;
  }
  funds_ = std::min(funds_ + kIncome, kMaxFunds);
  tokens_.push_back(token);
  previous_.push_back(-1);
  if (hit) {
    ++follow_;
    ++match_length_;
  } else {
    look_up();
  }
  index_last();
}

void PromptLookup::propose(int max_draft, double row_cost, std::vector<Token>& drafts) const {
  drafts.clear();
  if (follow_ < 0) return;
  // One more guess is worth it while it raises tokens per time: (1 + gain) / (1 + cost).
  double gain = 0, cost = 0, reached = 1;
  for (int i = 0; i < max_draft; ++i) {
    const Rate& rate = rates_[static_cast<size_t>(bucket(match_length_ + i))];
    reached *= rate.hits / rate.tries;
    if (reached * (1 + cost) <= row_cost * (1 + gain) || cost + row_cost > funds_) break;
    gain += reached;
    cost += row_cost;
    const size_t next = static_cast<size_t>(follow_) + static_cast<size_t>(i);
    // Past the end the guess continues from itself: a repetition with a short period.
    drafts.push_back(next < tokens_.size() ? tokens_[next] : drafts[next - tokens_.size()]);
  }
}

void PromptLookup::settle(int n_drafted, int n_accepted, double row_cost) {
  funds_ = std::min(funds_ - n_drafted * row_cost + n_accepted, kMaxFunds);
}

size_t PromptLookup::slot(int64_t end) const {
  uint64_t hash = 0;
  for (int i = 1; i <= kGram; ++i) {
    hash = (hash ^ static_cast<uint32_t>(token_at(end - i))) * 0x9e3779b97f4a7c15;
  }
  return (hash >> 32) & (heads_.size() - 1);
}

void PromptLookup::index_last() {
  const auto end = static_cast<int64_t>(tokens_.size());
  if (end < kGram) return;
  if (tokens_.size() > heads_.size()) return rehash();
  int32_t& head = heads_[slot(end)];
  previous_[static_cast<size_t>(end)] = head;
  head = static_cast<int32_t>(end);
}

void PromptLookup::rehash() {
  heads_.assign(std::max(heads_.size(), std::bit_ceil(2 * tokens_.size())), -1);
  for (int64_t end = kGram; end <= std::ssize(tokens_); ++end) {
    int32_t& head = heads_[slot(end)];
    previous_[static_cast<size_t>(end)] = head;
    head = static_cast<int32_t>(end);
  }
}

void PromptLookup::look_up() {
  follow_ = -1;
  match_length_ = 0;
  const auto n = std::ssize(tokens_);
  if (n < kGram) return;
  int32_t candidate = heads_[slot(n)];
  for (int tries = 0; candidate >= 0 && tries < kMaxCandidates; ++tries) {
    int length = 0;
    while (length < kMaxMatch && length < candidate &&
           token_at(candidate - 1 - length) == token_at(n - 1 - length)) {
      ++length;
    }
    // The last tokens themselves may already be in the index: they predict nothing.
    if (candidate < n && length >= kGram && length > match_length_) {
      match_length_ = length;
      follow_ = candidate;
    }
    candidate = previous_[static_cast<size_t>(candidate)];
  }
}

}  // namespace sluice
