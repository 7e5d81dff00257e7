// Numbers for people and for programs.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "engine/request.h"

namespace sluice {

std::string bytes_text(double bytes);  // "88.2 MiB"
/// Three significant digits or whole numbers: "0.123", "12.3", "1234".
std::string short_number(double value);
/// Rounded to 4 decimals, for JSON.
double rounded(double value);
/// Largest resident set of this process so far.
int64_t peak_resident_bytes();

/// {"compute", "sync", "wire", "idle"}: milliseconds per unit, of which there are `n`.
Json timing_to_json(const StageTiming& timing, double n);

/// Prints one line of JSON to standard output; texts that are not UTF-8 become U+FFFD.
void print_json(const Json& json);
void print_json(const OrderedJson& json);

/// Before work whose result goes there. Throws kIo; leaves no file that was not there.
void require_writable(const std::string& path);
/// Throws kIo.
void write_file(const std::string& path, const std::string& text);

/// A bar on standard error while it is a terminal; nothing otherwise.
class Progress {
 public:
  explicit Progress(std::string what, bool quiet);
  ~Progress();
  void update(double fraction, const std::string& note = "");
  void clear();

 private:
  std::string what_;
  bool is_shown_;
};

}  // namespace sluice
