#include "plan/draft.h"

#include <cmath>

#include "base/error.h"

namespace sluice {
namespace {

struct KnownDraft {
  const char* name;
  int length;
  double accepted;
  const char* source;
};

constexpr KnownDraft kDrafts[] = {
    {"none", 0, 1, ""},
    {"mtp-1", 1, 1.79, "DeepSeek-V4-Pro, SPEED-Bench, coding"},
    {"mtp-2", 2, 2.27, "DeepSeek-V4-Pro, SPEED-Bench, coding"},
    {"mtp-3", 3, 2.49, "DeepSeek-V4-Pro, SPEED-Bench, coding"},
    {"mtp-4", 4, 2.54, "DeepSeek-V4-Pro, SPEED-Bench, coding"},
    {"dspark-4", 4, 3.22, "Kimi-K3, SPEED-Bench, coding"},
    {"dspark-7", 7, 3.78, "Kimi-K3, SPEED-Bench, coding"},
    {"eagle3-4", 4, 3.24, "Kimi-K2.5, SPEED-Bench, coding"},
    {"eagle3-8", 8, 3.77, "Kimi-K2.5, SPEED-Bench, coding"},
};
constexpr KnownDraft kPipe = {"pipe", 0, 1,
                              "SPD, arXiv 2605.30852, Qwen3.5-4B and 9B on 4, 8 and 16 stages"};

/// The chance that a guess follows those before it which makes the published gains without overhead
/// (2.64 with 4 stages, 3.39 to 3.61 with 8, 3.70 to 3.90 with 16) as 1 + p + ... + p^(n-1).
constexpr double kPipeHits = 0.735;
/// What the wall clock took beyond that: 2.64 / 2.27 - 1, 3.50 / 2.60 - 1, 3.80 / 1.46 - 1.
struct PipeOverhead {
  int n;
  double share;
};
constexpr PipeOverhead kPipeOverheads[] = {{1, 0}, {4, 0.163}, {8, 0.346}, {16, 1.603}};

/// mtp-2 keeps what mtp-1 keeps, and more: what a further guess adds is how often it is reached.
std::vector<double> reached_by_steps(const std::string& family, int length) {
  std::vector<double> reached;
  double before = 1;
  for (const KnownDraft& known : kDrafts) {
    if (!std::string(known.name).starts_with(family) || known.length > length) continue;
    reached.push_back(known.accepted - before);
    before = known.accepted;
  }
  return reached;
}

/// Each guess as likely as any other, given those before it.
std::vector<double> reached_alike(int length, double accepted) {
  const auto fill = [&](double p) {
    std::vector<double> reached;
    double share = 1;
    for (int i = 0; i < length; ++i) reached.push_back(share *= p);
    return reached;
  };
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double sum = 1;
    for (double share : fill(middle)) sum += share;
    (sum < accepted ? low : high) = middle;
  }
  return fill(low);
}

}  // namespace

Draft draft_named(const std::string& method) {
  for (const KnownDraft& known : kDrafts) {
    if (method != known.name) continue;
    const bool by_steps = method.starts_with("mtp-");
    return {.method = known.name,
            .length = known.length,
            .accepted = known.accepted,
            .reached = by_steps ? reached_by_steps("mtp-", known.length)
                                : reached_alike(known.length, known.accepted),
            .source = known.source};
  }
  if (method == kPipe.name) {
    return {.method = kPipe.name, .fills_pipe = true, .source = kPipe.source};
  }
  throw Error(ErrorCode::kInvalidInput, "draft: expected one of {}, got {}",
              fmt::join(draft_names(), ", "), method);
}

std::vector<std::string> draft_names() {
  std::vector<std::string> names;
  for (const KnownDraft& known : kDrafts) names.emplace_back(known.name);
  names.emplace_back(kPipe.name);
  return names;
}

int accepted_guesses(const Draft& draft, uint64_t seed, uint64_t request, int position) {
  uint64_t x = seed * 0x9e3779b97f4a7c15 ^ request * 0xd1342543de82ef95 ^ uint64_t(position);
  for (int round = 0; round < 2; ++round) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
  }
  const double drawn = double(x >> 11) * 0x1p-53;
  int n = 0;
  for (double share : draft.reached) n += drawn < share;
  return n;
}

double pipe_gain(int n) {
  CHECK(n >= 1 && n <= kMostInPipe);
  const double gain = (1 - std::pow(kPipeHits, n)) / (1 - kPipeHits);
  const PipeOverhead* to = kPipeOverheads + 1;
  while (to->n < n) ++to;
  const PipeOverhead& from = to[-1];
  const double way = double(n - from.n) / (to->n - from.n);
  return gain / (1 + from.share + way * (to->share - from.share));
}

}  // namespace sluice
