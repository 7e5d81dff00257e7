#include "text/jinja_budget.h"

namespace sluice::jinja {
namespace {

thread_local Budget* active = nullptr;

// Copying and scanning is far cheaper per byte than a step of the interpreter.
constexpr size_t kBytesPerStep = 128;

}  // namespace

Budget::Budget(size_t input_bytes)
    : previous_(active),
      steps_left_(kMaxSteps + 16 * input_bytes),
      alive_limit_(kMaxAliveBytes + 16 * input_bytes) {
  active = this;
}

Budget::~Budget() { active = previous_; }

Budget* Budget::current() { return active; }

void Budget::step(size_t n) {
  if (n > steps_left_) {
    throw Failure(ErrorCode::kResource, "the template takes too long: more steps than allowed");
  }
  steps_left_ -= n;
}

void Budget::allocate(size_t bytes) {
  step(bytes / kBytesPerStep);
  if (bytes > alive_limit_ - alive_) {
    throw Failure(ErrorCode::kResource, "the template uses too much memory");
  }
  alive_ += bytes;
}

Budget::Nesting::Nesting() {
  if (!active) return;
  if (active->nesting_ > kMaxValueDepth) fail("a value is nested deeper than {}", kMaxValueDepth);
  ++active->nesting_;
}

Budget::Nesting::~Nesting() {
  if (active) --active->nesting_;
}

void spend(size_t n) {
  if (active) active->step(n);
}

void check_text_size(size_t bytes) {
  if (bytes > kMaxAliveBytes) {
    throw Failure(ErrorCode::kResource,
                  fmt::format("the template builds a text of {} bytes", bytes));
  }
  spend(bytes / kBytesPerStep);
}

Charge::Charge(size_t bytes) {
  if (!active) return;
  active->allocate(bytes);
  bytes_ = bytes;
}

Charge::~Charge() {
  if (bytes_ && active) active->release(bytes_);
}

Output::~Output() {
  if (charged_ && active) active->release(charged_);
}

void Output::append(std::string_view piece) {
  if (text_.size() + piece.size() > kMaxOutputBytes) {
    throw Failure(ErrorCode::kResource,
                  fmt::format("the template writes more than {} bytes", kMaxOutputBytes));
  }
  if (active) {
    active->allocate(piece.size());
    charged_ += piece.size();
  }
  text_ += piece;
}

std::string Output::take() {
  if (charged_ && active) active->release(charged_);
  charged_ = 0;
  return std::move(text_);
}

}  // namespace sluice::jinja
