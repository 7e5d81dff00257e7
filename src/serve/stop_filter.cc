#include "serve/stop_filter.h"

#include <algorithm>
#include <utility>

namespace sluice {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopFilter::push(std::string_view text) {
  if (stopped()) return "";
  held_ += text;
  size_t cut = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t found = held_.find(stop);
    if (found >= cut) continue;
    cut = found;
    stop_text_ = stop;
  }
  if (stopped()) {
    held_.resize(cut);
    return std::move(held_);
  }
  size_t n_held = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > n_held; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) n_held = n;
    }
  }
  std::string shown = held_.substr(0, held_.size() - n_held);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() { return stopped() ? "" : std::exchange(held_, ""); }

}  // namespace sluice
