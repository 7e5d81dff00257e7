#include "plan/workload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostTokens = 1 << 24;
constexpr int kMostRequests = 10'000'000;
constexpr double kMostSeconds = 1e9;

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// Reads a trace line by line, with errors that name file, line and column.
class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& what) : text_(text), what_(what) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    if (!next_line())
      throw Error(ErrorCode::kInvalidInput, "{}: expected a CSV, got nothing", what_);
    for (size_t i = 0; i < kColumns.size(); ++i) {
      const auto found = std::find(cells_.begin(), cells_.end(), kColumns[i]);
      column_[i] = found == cells_.end() ? -1 : int(found - cells_.begin());
      if (std::count(cells_.begin(), cells_.end(), kColumns[i]) > 1) {
        throw Error(ErrorCode::kInvalidInput, "{}: line 1: expected one column {}, got several",
                    what_, kColumns[i]);
      }
      if (column_[i] < 0 && kColumns[i] != "session") {
        throw Error(ErrorCode::kInvalidInput, "{}: line 1: expected a column {}", what_,
                    kColumns[i]);
      }
    }
    n_columns_ = cells_.size();
  }

  bool next(Arrival& row) {
    if (!next_line()) return false;
    if (cells_.size() != n_columns_) fail("", fmt::format("{} cells", n_columns_), cells_.size());
    const double arrival_s = number<double>(0, 0, kMostSeconds);
    row.time_us = arrival_s * 1e6;
    row.prompt = number<int>(1, 1, kMostTokens);
    row.output = number<int>(2, 1, kMostTokens);
    row.session = session();
    if (row.time_us < last_us_) {
      fail("arrival_s: ", fmt::format("at least that of the line before ({})", last_us_ / 1e6),
           arrival_s);
    }
    last_us_ = row.time_us;
    return true;
  }

 private:
  static constexpr std::array<std::string_view, 4> kColumns = {"arrival_s", "prompt_tokens",
                                                               "output_tokens", "session"};

  template <typename Got>
  [[noreturn]] void fail(std::string_view column, const std::string& expected, const Got& got) {
    throw Error(ErrorCode::kInvalidInput, "{}: line {}: {}expected {}, got {}", what_, line_,
                column, expected, got);
  }

  /// The next line that is not empty, in cells.
  bool next_line() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      cells_ = split(line);
      return true;
    }
    return false;
  }

  template <typename T>
  T number(size_t column, T low, T high) {
    const std::string_view cell = cells_[size_t(column_[column])];
    T value{};
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !(value >= low) ||
        !(value <= high)) {
      fail(fmt::format("{}: ", kColumns[column]), fmt::format("a number from {} to {}", low, high),
           fmt::format("\"{}\"", cell.substr(0, 40)));
    }
    return value;
  }

  uint32_t session() {
    if (column_[3] < 0) return n_sessions_++;
    const auto [it, is_new] =
        sessions_.emplace(std::string(cells_[size_t(column_[3])]), n_sessions_);
    if (is_new) ++n_sessions_;
    return it->second;
  }

  std::string_view text_;
  const std::string& what_;
  std::vector<std::string_view> cells_;
  std::array<int, 4> column_{};
  size_t n_columns_ = 0;
  int64_t line_ = 0;
  double last_us_ = 0;
  std::unordered_map<std::string, uint32_t> sessions_;
  uint32_t n_sessions_ = 0;
};

}  // namespace

void WorkloadOptions::validate() const {
  const auto check = [](const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high)) {
      throw Error(ErrorCode::kInvalidInput, "workload: {}: expected {} to {}, got {}", name, low,
                  high, value);
    }
  };
  check("requests", requests, 1, kMostRequests);
  check("rate", rate, 0, 1e9);
  check("users", users, 1, 1 << 20);
  check("prompt", prompt, 1, kMostTokens);
  check("output", output, 1, kMostTokens);
  check("spread", spread, 0, 10);
  check("turns", turns, 1, 10000);
  check("turn_prompt", turn_prompt, 1, kMostTokens);
  check("think_us", think_us, 0, kMostSeconds * 1e6);
}

Workload::Workload(const WorkloadOptions& options) : options_(options), random_(options.seed) {
  options_.validate();
  if (options_.rate > 0) {
    plan_open();
  } else {
    for (int u = 0; u < options_.users; ++u) begin_session(0);
  }
}

Workload Workload::from_trace(std::string_view text, const std::string& what) {
  Workload workload;
  TraceReader reader(text, what);
  for (Arrival row; reader.next(row);) {
    if (std::ssize(workload.trace_) == kMostRequests) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected at most {} requests", what,
                  kMostRequests);
    }
    workload.trace_.push_back(row);
  }
  if (workload.trace_.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected at least one request", what);
  }
  return workload;
}

double Workload::next_us() const {
  if (!trace_.empty()) {
    return next_row_ < trace_.size() ? trace_[next_row_].time_us : kInfinity;
  }
  return pending_.empty() ? kInfinity : pending_.top().time_us;
}

int Workload::remaining() const {
  return (trace_.empty() ? options_.requests : int(trace_.size())) - n_taken_;
}

Arrival Workload::take() {
  ++n_taken_;
  if (!trace_.empty()) return trace_[next_row_++];
  const Arrival arrival = pending_.top();
  pending_.pop();
  if (options_.rate > 0 && arrival.turn == 0) plan_open();
  return arrival;
}

void Workload::finished(const Arrival& arrival, double now_us) {
  if (!trace_.empty()) return;
  const bool goes_on = arrival.turn + 1 < options_.turns && n_planned_ < options_.requests;
  if (goes_on) {
    ++n_planned_;
    const int64_t prompt = int64_t(arrival.prompt) + arrival.output + length(options_.turn_prompt);
    pending_.push({.time_us = now_us + options_.think_us,
                   .prompt = int(std::min<int64_t>(prompt, std::numeric_limits<int>::max() / 2)),
                   .output = length(options_.output),
                   .session = arrival.session,
                   .turn = arrival.turn + 1});
  } else if (options_.rate == 0) {
    begin_session(now_us);
  }
}

void Workload::begin_session(double time_us) {
  if (n_planned_ == options_.requests) return;
  ++n_planned_;
  const int prompt = length(options_.prompt);
  pending_.push({.time_us = time_us,
                 .prompt = prompt,
                 .output = length(options_.output),
                 .session = next_session_++});
}

void Workload::plan_open() {
  open_us_ -= std::log(uniform()) / options_.rate * 1e6;
  begin_session(open_us_);
}

double Workload::uniform() { return double((random_() >> 11) + 1) * 0x1p-53; }

int Workload::length(double mean) {
  double tokens = mean;
  if (options_.spread > 0) {
    // Log-normal with this mean and this ratio of standard deviation to mean.
    const double variance = std::log(1 + options_.spread * options_.spread);
    const double u = uniform(), v = uniform();
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    tokens *= std::exp(normal * std::sqrt(variance) - variance / 2);
  }
  return int(std::clamp(std::round(tokens), 1.0, double(kMostTokens)));
}

int64_t Workload::longest() const {
  if (!trace_.empty()) {
    int64_t longest = 0;
    for (const Arrival& row : trace_) {
      longest = std::max(longest, int64_t(row.prompt) + row.output);
    }
    return longest;
  }
  const double turn = double(options_.turn_prompt) + options_.output;
  const double tokens = double(options_.prompt) + options_.output + (options_.turns - 1) * turn;
  return int64_t(std::ceil(tokens * (1 + 4 * options_.spread)));
}

}  // namespace sluice
