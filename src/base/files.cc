#include "base/files.h"

#include <fstream>

#include "base/error.h"

namespace sluice {

namespace fs = std::filesystem;

namespace {

/// Where a link points to, which need not exist.
fs::path target_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  if (fs::exists(path, error)) return fs::canonical(path, error);
  return path.parent_path() / fs::read_symlink(path, error);
}

}  // namespace

void write_whole_file(const fs::path& path, const std::function<void(std::ostream&)>& fill) {
  std::error_code error;
  const fs::path target = target_of(path);
  const bool in_place = fs::exists(target, error) && !fs::is_regular_file(target, error);
  fs::path partial = target;
  if (!in_place) partial += ".partial";
  const auto give_up = [&] {
    if (!in_place) fs::remove(partial, error);
  };
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  try {
    fill(out);
  } catch (...) {
    give_up();
    throw;
  }
  out.close();
  error.clear();
  if (out && !in_place) fs::rename(partial, target, error);
  if (!out || error) {
    give_up();
    throw Error(ErrorCode::kIo, "{}: cannot write", path.string());
  }
}

}  // namespace sluice
