// Writing files so that nobody finds half of one.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>

namespace sluice {

/// Writes `path` through `fill`; a failure leaves what was there. A link's target is written; what
/// is no regular file (a pipe, a device) is written in place. Throws kIo.
void write_whole_file(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& fill);

}  // namespace sluice
