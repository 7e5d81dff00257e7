// Errors that input can cause (Error) and errors of the program itself (CHECK).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace sluice {

enum class ErrorCode {
  kInvalidInput,  // a file, flag, request or frame breaks its format
  kNotFound,      // a file, tensor or name does not exist
  kUnsupported,   // well-formed, but not something this build can do
  kResource,      // memory, cache space or a limit is exhausted
  kIo,            // the operating system refused a read, write or mapping
};

/// An error caused by input. The message names the file, the field and what was expected:
/// "model.gguf: tensor blk.0.attn_q.weight: expected (576, 576), got (576, 192)".
class Error : public std::runtime_error {
 public:
  template <typename... Args>
  Error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)), code_(code) {}

  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

/// States what the program itself guarantees. Never used on a file, request or flag.
#define CHECK(condition) \
  ((condition) ? (void)0 : ::sluice::check_failed(#condition, __FILE__, __LINE__))

}  // namespace sluice
