// The numbers of the page of `sluice plan --html`, as the text that the page reads.
#pragma once

#include <string>
#include <vector>

#include "plan/hardware.h"
#include "plan/search.h"

namespace sluice {

struct PageModel {
  ModelShape shape;
  std::vector<WeightFormat> weights;  // the published one first
};

/// One kind of hardware, or mixers on the first and feed-forwards on the second.
struct PageHardware {
  std::vector<Hardware> parts;

  std::string name() const;
};

/// The loads and numbers of guesses that are priced. Sensitivities are known for fewer loads.
struct PageAxes {
  std::vector<double> users, contexts;
  std::vector<int> guesses;
  std::vector<double> rest_users, rest_contexts;
};

/// Of a way of placing the model at a load, whatever is guessed; and for each number of guesses.
/// first_between_ms: of a prompt between this context and the next, in the middle of logarithms.
inline constexpr const char* kEntryColumns[] = {"first_ms", "first_between_ms", "weights_gb",
                                                "cache_gb"};
inline constexpr const char* kGridColumns[] = {"waiting_us", "compute_us", "memory_us",
                                               "joins_us",   "launch_us",  "hops_us"};

/// Ways of placing a model are numbered below this.
inline constexpr size_t kMostWays = 256;

/// Numbers as text, six digits of each: four digits in base 36, then the exponent of ten plus
/// kExponentBias in base 36: m x 10^(e - kExponentBias). A capital letter repeats the number
/// before: A once, Z 26 times.
class Column {
 public:
  void add(double value);
  std::string text() const { return text_ + repeats_text(); }

 private:
  std::string repeats_text() const;

  std::string text_, last_;
  int repeats_ = 0;
};
inline constexpr int kExponentBias = 18;

/// {"forms": [[name with # for its numbers, fullest part] ...],
///  "plans": [[form, [numbers of its name], [devices of each part]] ...],
///  "parts": [[usable bytes, USD/h, W] of a device of each],
///  "best": column: the best way, in the order of formats, users, contexts, guesses,
///  "step": column: by how much each entry's key is above the last one's; a key is
///          (format x kMostWays + way) x loads + load (users, contexts),
///  "plan", "shared": columns of the entries, "points": such columns by number of guesses,
///  "rests": {"numbers": [[part, name] ...], "weight", "low", "high": [columns]}}
/// An entry is what a way of placing the model gives at a load; of each way that is best somewhere,
/// at the loads around. `low` and `high` are speeds at the ends of a number's range, as shares of
/// the speed.
std::string grid_of(const PageModel& model, const PageHardware& hardware, Demand demand,
                    const PageAxes& axes);

/// {"plans": [names], "plan": column, "ms": column}: one prompt, computed as soon as possible, by
/// format and context.
std::string prefills_of(const PageModel& model, const Hardware& hardware, Demand demand,
                        const PageAxes& axes);

}  // namespace sluice
