#include "plan/wafer.h"

#include <cmath>

#include "base/json.h"
#include "plan/embedded.h"

namespace sluice {

const std::vector<WaferPoint>& wafer_points() {
  static const std::vector<WaferPoint> kPoints = [] {
    std::vector<WaferPoint> points;
    const EmbeddedFile& file = calibration_file("wafers");
    const Json json = parse_json(file.text, file.file);
    for (const Json& item : json["points"]) {
      const Config point(item, file.file);
      points.push_back({.model = point.text("model"),
                        .kind = point.text("kind"),
                        .source = point.text("source"),
                        .layers = point.number("layers"),
                        .tokens_per_s = point.number("tokens_per_s")});
    }
    return points;
  }();
  return kPoints;
}

WaferLaw fit_wafer(const std::vector<WaferPoint>& points) {
  WaferLaw best;
  double least = 1e300;
  // t = s x (r + layers): for every r, the best s is known.
  for (double r = 0; r <= 1000; r += 0.25) {
    double mean = 0, sum = 0;
    for (const WaferPoint& p : points) mean -= std::log(p.tokens_per_s * (r + p.layers));
    mean /= double(points.size());
    for (const WaferPoint& p : points) {
      sum += std::pow(std::log(p.tokens_per_s * (r + p.layers)) + mean, 2);
    }
    if (sum >= least) continue;
    least = sum;
    const double s = 1e6 * std::exp(mean);
    best = {.fixed_us = s * r, .layer_us = s};
  }
  return best;
}

std::vector<WaferError> wafer_leave_one_out() {
  std::vector<WaferError> errors;
  for (const WaferPoint& held : wafer_points()) {
    std::vector<WaferPoint> others;
    for (const WaferPoint& p : wafer_points()) {
      if (p.model != held.model) others.push_back(p);
    }
    errors.push_back({held, 1e6 / fit_wafer(others).token_us(held.layers)});
  }
  return errors;
}

}  // namespace sluice
