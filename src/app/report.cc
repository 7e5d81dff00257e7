#include "app/report.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"

namespace sluice {
namespace {

template <typename AnyJson>
void print_line(const AnyJson& json) {
  // ASCII only: many readers take U+2028 and the like for the end of a line.
  const std::string line =
      json.dump(-1, ' ', /*ensure_ascii=*/true, AnyJson::error_handler_t::replace);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{} {}", short_number(bytes), units[unit]);
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 100 || value == 0) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

int64_t peak_resident_bytes() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

Json timing_to_json(const StageTiming& timing, double n) {
  const double unit = n > 0 ? 1e3 * n : 1e3;
  return {{"compute", rounded(timing.compute_us / unit)},
          {"sync", rounded(timing.sync_us / unit)},
          {"wire", rounded(timing.wire_us / unit)},
          {"idle", rounded(timing.idle_us / unit)}};
}

void print_json(const Json& json) { print_line(json); }
void print_json(const OrderedJson& json) { print_line(json); }

void require_writable(const std::string& path) {
  std::error_code error;
  const bool is_new = !std::filesystem::exists(path, error);
  const bool is_open = std::ofstream(path, std::ios::binary | std::ios::app).is_open();
  if (!is_open) throw Error(ErrorCode::kIo, "{}: cannot be written", path);
  if (is_new) std::filesystem::remove(path, error);
}

void write_file(const std::string& path, const std::string& text) {
  write_whole_file(path, [&](std::ostream& out) { out << text; });
}

Progress::Progress(std::string what, bool quiet)
    : what_(std::move(what)), is_shown_(!quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(double fraction, const std::string& note) {
  if (!is_shown_) return;
  constexpr int kWidth = 30;
  const int n_done = int(std::clamp(fraction, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r\x1b[K{} [{:#<{}}{:.<{}}] {:3.0f} % {}", what_, "", n_done, "",
             kWidth - n_done, 100 * fraction, note);
  std::fflush(stderr);
}

}  // namespace sluice
