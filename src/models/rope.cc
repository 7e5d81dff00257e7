#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

/// Long wavelengths are divided by `factor`, short ones kept, those between blended.
void scale_llama3(std::vector<double>& inv_freq, const Config& scaling) {
  const double factor = scaling.number("factor");
  const double low = scaling.number("low_freq_factor"), high = scaling.number("high_freq_factor");
  const double original = scaling.number("original_max_position_embeddings");
  for (double& inv : inv_freq) {
    const double wavelength = kTwoPi / inv;
    if (wavelength > original / low) {
      inv /= factor;
    } else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      inv = (1 - smooth) * inv / factor + smooth * inv;
    }
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

/// Blends inv / factor and inv over a ramp between the dims that turn beta_slow and beta_fast times
/// within the original context; returns the factor of cos and sin.
double scale_yarn(std::vector<double>& inv_freq, const Config& scaling, double theta,
                  double max_context) {
  const double d = 2.0 * double(inv_freq.size());
  const double original = scaling.number("original_max_position_embeddings", max_context);
  const double factor = scaling.number("factor");
  const auto dim_of = [&](double turns) {
    return d * std::log(original / (turns * kTwoPi)) / (2 * std::log(theta));
  };
  double low = dim_of(scaling.number("beta_fast", 32));
  double high = dim_of(scaling.number("beta_slow", 1));
  if (scaling.boolean("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, d - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] = inv_freq[i] / factor * ramp + inv_freq[i] * (1 - ramp);
  }
  if (scaling.has("mscale") && scaling.has("mscale_all_dim")) {
    return yarn_mscale(factor, scaling.number("mscale")) /
           yarn_mscale(factor, scaling.number("mscale_all_dim"));
  }
  return scaling.number("attention_factor", yarn_mscale(factor, 1));
}

}  // namespace

Rope make_rope(const Config& config, const Checkpoint& checkpoint, int rotary_dims) {
  const bool nested = config.has("rope_parameters");
  const bool scaled = nested || config.has("rope_scaling");
  const Config scaling = scaled ? config.object(nested ? "rope_parameters" : "rope_scaling")
                                : Config(Json::object(), config.what());
  const double theta = scaling.number("rope_theta", config.number("rope_theta", 10000));
  if (!(theta > 1)) {
    throw Error(ErrorCode::kInvalidInput, "{}: rope_theta: expected a number above 1, got {}",
                config.what(), theta);
  }
  Rope rope;
  for (int i = 0; i < rotary_dims / 2; ++i) {
    rope.inv_freq.push_back(std::pow(theta, -2.0 * i / rotary_dims));
  }
  const WeightName factors{.name = "rope_freqs.weight"};
  if (checkpoint.has(factors)) {
    const std::vector<float> divisors = checkpoint.vector(factors, rotary_dims / 2);
    for (int i = 0; i < rotary_dims / 2; ++i)
      rope.inv_freq[size_t(i)] /= double(divisors[size_t(i)]);
    return rope;
  }
  const std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  if (kind == "linear") {
    for (double& inv : rope.inv_freq) inv /= scaling.number("factor");
  } else if (kind == "llama3") {
    scale_llama3(rope.inv_freq, scaling);
  } else if (kind == "yarn") {
    rope.scale = float(
        scale_yarn(rope.inv_freq, scaling, theta, config.number("max_position_embeddings", 2048)));
  } else if (kind != "default" && kind != "dynamic") {
    throw Error(ErrorCode::kUnsupported,
                "{}: rope_scaling: kind {} is not supported (supported: default, linear, dynamic, "
                "llama3, yarn)",
                config.what(), kind);
  }
  return rope;
}

}  // namespace sluice
