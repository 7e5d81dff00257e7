// What one parse or rendering of a template may use: steps (time), bytes alive, nesting.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice::jinja {

/// A fault found while parsing or rendering; the template adds its name and line.
struct Failure : std::runtime_error {
  Failure(ErrorCode error_code, std::string message)
      : std::runtime_error(std::move(message)), code(error_code) {}
  ErrorCode code;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(ErrorCode::kInvalidInput, fmt::format(format, std::forward<Args>(args)...));
}

inline constexpr size_t kMaxSteps = 20'000'000;
inline constexpr size_t kMaxOutputBytes = 16 << 20;
inline constexpr size_t kMaxAliveBytes = 256 << 20;
inline constexpr int kMaxEvaluationDepth = 2000;
inline constexpr int kMaxExpressionHeight = 400;
inline constexpr int kMaxBlockDepth = 100;
inline constexpr int kMaxValueDepth = 400;

/// Counts for the rendering that is active on this thread. Values charge it where they are created
/// and released, which is everywhere; hence one per thread and not a parameter.
class Budget {
 public:
  /// `input_bytes` is what the caller handed in; it is allowed on top of the limits.
  explicit Budget(size_t input_bytes);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  static Budget* current();

  void step(size_t n = 1);
  void allocate(size_t bytes);
  void release(size_t bytes) { alive_ -= bytes; }

  /// Nested calls of repr() for as long as it lives; a namespace may hold itself.
  class Nesting {
   public:
    Nesting();
    ~Nesting();
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
  };

 private:
  Budget* previous_;
  size_t steps_left_;
  size_t alive_ = 0;
  size_t alive_limit_;
  int nesting_ = 0;
};

/// Spends `n` steps of the active budget, if there is one.
void spend(size_t n);

/// Spends what the search for `n_part` bytes among `n_text` may cost at worst: it compares up to
/// the whole part at every position.
inline void spend_search(size_t n_text, size_t n_part) {
  spend(n_text / 64 + n_text * n_part / 2048);
}

/// Throws before a text of `bytes` is built that no template needs; call it ahead of repetition.
void check_text_size(size_t bytes);

/// Memory of one value, charged while the value lives.
class Charge {
 public:
  explicit Charge(size_t bytes);
  ~Charge();
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  size_t bytes_ = 0;
};

/// Text under construction, charged as it grows.
class Output {
 public:
  Output() = default;
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void append(std::string_view piece);
  const std::string& text() const { return text_; }
  std::string take();

 private:
  std::string text_;
  size_t charged_ = 0;
};

}  // namespace sluice::jinja
