// Ends a stream of text before a stop text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Cuts a stream of text before the first of some stop texts. What may be the beginning of one is
/// held back until it is decided.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops);
  /// The text that may be shown; `stopped()` afterwards says whether a stop text was met, and
  /// `stop_text()` which.
  std::string push(std::string_view text);
  /// What was held back, at the end of the stream.
  std::string finish();
  bool stopped() const { return !stop_text_.empty(); }
  const std::string& stop_text() const { return stop_text_; }

 private:
  std::vector<std::string> stops_;
  std::string held_, stop_text_;
};

}  // namespace sluice
