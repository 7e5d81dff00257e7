#include "plan/fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kContradiction = 1.5;  // repeats this far apart are not one operating point
constexpr double kScale = 0.12;         // of the robust loss: larger errors count linearly
constexpr double kPrior = 0.2;          // pull to the start, for 100 points
constexpr int kSteps = 40;

using Vector = std::vector<double>;

/// Solves A x = b for symmetric positive A (n x n, row by row) by Cholesky.
Vector solve(Vector a, Vector b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / a[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return b;
}

/// Minimises sum rho(r_i(x)) + prior over the constants `which`.
class Fit {
 public:
  using Residuals = std::function<Vector(const Calibration&)>;

  Fit(std::vector<size_t> which, size_t n_points, Residuals residuals)
      : which_(std::move(which)),
        residuals_(std::move(residuals)),
        prior_(kPrior * std::sqrt(double(n_points) / 100)) {}

  Calibration run(Calibration at) const {
    Vector r = residuals_(at);
    double best = loss(at, r), damping = 1e-2;
    for (int step = 0; step < kSteps && damping < 1e8; ++step) {
      const auto [matrix, gradient] = normal_equations(at, r);
      const double before = best;
      for (; damping < 1e8; damping *= 4) {
        const Calibration next = moved(at, matrix, gradient, damping);
        Vector next_r = residuals_(next);
        const double next_loss = loss(next, next_r);
        if (next_loss >= best) continue;
        at = next;
        r = std::move(next_r);
        best = next_loss;
        damping /= 8;
        break;
      }
      if (before - best < 1e-5 * before) break;
    }
    return at;
  }

 private:
  double prior_residual(const Calibration& at, size_t i) const {
    return prior_ * std::log(at.values[i] / kConstantInfo[i].start);
  }

  double loss(const Calibration& at, const Vector& r) const {
    double sum = 0;
    for (const double residual : r) {
      const double z = residual / kScale;
      sum += 2 * kScale * kScale * (std::sqrt(1 + z * z) - 1);
    }
    for (size_t i : which_) sum += std::pow(prior_residual(at, i), 2);
    return sum;
  }

  std::pair<Vector, Vector> normal_equations(const Calibration& at, const Vector& r) const {
    constexpr double kDelta = 1e-4;
    const size_t n = which_.size();
    std::vector<Vector> columns;
    for (size_t i : which_) {
      Calibration moved = at;
      moved.values[i] *= std::exp(kDelta);
      columns.push_back(residuals_(moved));
    }
    Vector matrix(n * n, 0), gradient(n, 0);
    for (size_t k = 0; k < r.size(); ++k) {
      const double z = r[k] / kScale, weight = 1 / std::sqrt(1 + z * z);
      for (size_t i = 0; i < n; ++i) {
        const double slope = (columns[i][k] - r[k]) / kDelta;
        gradient[i] += weight * slope * r[k];
        for (size_t j = 0; j <= i; ++j) {
          matrix[i * n + j] += weight * slope * (columns[j][k] - r[k]) / kDelta;
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      matrix[i * n + i] += prior_ * prior_;
      gradient[i] += prior_ * prior_residual(at, which_[i]);
      for (size_t j = 0; j < i; ++j) matrix[j * n + i] = matrix[i * n + j];
    }
    for (size_t i = 0; i < n; ++i) {
      if (!is_held(at, which_[i], gradient[i])) continue;
      for (size_t j = 0; j < n; ++j) matrix[i * n + j] = matrix[j * n + i] = 0;
      matrix[i * n + i] = 1;
      gradient[i] = 0;
    }
    return {std::move(matrix), std::move(gradient)};
  }

  /// At a bound that it would leave; held there, it does not spoil the step of the others.
  static bool is_held(const Calibration& at, size_t constant, double gradient) {
    const ConstantInfo& info = kConstantInfo[constant];
    const double value = at.values[constant];
    return gradient < 0 ? value >= info.high : value <= info.low;
  }

  Calibration moved(const Calibration& at, Vector matrix, const Vector& gradient,
                    double damping) const {
    const size_t n = which_.size();
    for (size_t i = 0; i < n; ++i) matrix[i * n + i] *= 1 + damping;
    const Vector step = solve(std::move(matrix), gradient);
    Calibration next = at;
    for (size_t i = 0; i < n; ++i) {
      const ConstantInfo& info = kConstantInfo[which_[i]];
      const double factor = std::exp(std::clamp(-step[i], -1.0, 1.0));
      next.values[which_[i]] = std::clamp(at.values[which_[i]] * factor, info.low, info.high);
    }
    return next;
  }

  std::vector<size_t> which_;
  Residuals residuals_;
  double prior_;
};

std::string key_of(const SiliconRow& r) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", family_of(r.model), r.system,
                     r.engine, r.precision, r.disaggregated, r.tensor, r.data, r.expert_tensor,
                     r.expert, r.workers, r.prompt, r.output, r.concurrency, r.speculative);
}

}  // namespace

std::string family_of(const std::string& model) {
  std::string name = model.substr(model.rfind('/') == model.npos ? 0 : model.rfind('/') + 1);
  if (name.find("DeepSeek-R1") == 0 || name.find("DeepSeek-V3") == 0) return "DeepSeek-R1";
  for (const char* suffix : {"-NVFP4", "-FP8", "-Instruct"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
  }
  return name;
}

std::vector<SiliconPoint> merge_repeats(std::vector<SiliconRow> rows) {
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < rows.size(); ++i) groups[key_of(rows[i])].push_back(i);
  std::vector<SiliconPoint> points;
  points.reserve(groups.size());
  for (const auto& [key, ids] : groups) {
    double sum = 0, low = 1e300, high = 0;
    std::vector<double> first;
    for (size_t i : ids) {
      sum += std::log(std::max(rows[i].tpot_ms, 1e-6));
      low = std::min(low, rows[i].tpot_ms);
      high = std::max(high, rows[i].tpot_ms);
      first.push_back(rows[i].ttft_ms);
    }
    std::nth_element(first.begin(), first.begin() + int64_t(first.size() / 2), first.end());
    SiliconPoint& point = points.emplace_back();
    point.row = std::move(rows[ids.front()]);
    point.ids = ids;
    point.row.tpot_ms = high > 0 ? std::exp(sum / double(ids.size())) : 0;
    point.row.ttft_ms = first[first.size() / 2];
    point.spread = low > 0 ? high / low : 1;
  }
  return points;
}

FitInput fit_input(std::vector<SiliconPoint> points, double most_concurrency) {
  FitInput input;
  SiliconCosts costs;
  for (SiliconPoint& point : points) {
    if (point.row.tpot_ms <= 0 || point.row.concurrency > most_concurrency ||
        point.spread > kContradiction) {
      continue;
    }
    std::string why;
    std::optional<SiliconCost> cost = costs.of(point.row, why);
    if (!cost) continue;
    input.points.push_back(std::move(point));
    input.costs.push_back(*std::move(cost));
  }
  return input;
}

Calibration fit_calibration(FitInput& input, const std::vector<bool>& use,
                            const Calibration& start) {
  std::vector<size_t> ids, all(kConstants);
  for (size_t i = 0; i < input.points.size(); ++i) {
    if (use[i]) ids.push_back(i);
  }
  std::iota(all.begin(), all.end(), size_t{0});
  return Fit(all, ids.size(),
             [&](const Calibration& at) {
               Vector r;
               for (size_t i : ids) {
                 const SiliconPrediction p = input.costs[i].predict(at);
                 const SiliconRow& row = input.points[i].row;
                 r.push_back(std::log(p.tpot_ms / row.tpot_ms));
                 if (p.ttft_ms > 0 && row.ttft_ms > 0) {
                   r.push_back(p.ttft_ms / row.ttft_ms - 1);
                 }
               }
               return r;
             })
      .run(start);
}

ErrorStatistics statistics_of(std::vector<double> errors) {
  ErrorStatistics s{.n = int(errors.size())};
  if (errors.empty()) return s;
  for (double& error : errors) {
    s.bias += 100 * error / s.n;
    error = std::abs(error);
    s.mean_absolute += 100 * error / s.n;
    s.worst = std::max(s.worst, 100 * error);
  }
  std::nth_element(errors.begin(), errors.begin() + int64_t(errors.size() / 2), errors.end());
  s.median_absolute = 100 * errors[errors.size() / 2];
  return s;
}

}  // namespace sluice
