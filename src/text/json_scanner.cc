#include "text/json_scanner.h"

#include <string_view>

namespace sluice {

JsonScanner::Result JsonScanner::push(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (depth_ == 0) return Result::kLast;
    }
    return Result::kInside;
  }
  if (scalar_) {
    return std::string_view(",]} \t\r\n<").find(c) == std::string_view::npos ? Result::kInside
                                                                             : Result::kBehind;
  }
  if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    if (depth_ == 0) return Result::kBehind;
    if (--depth_ == 0) return Result::kLast;
  } else if (!begun_) {
    scalar_ = true;
  }
  begun_ = true;
  return Result::kInside;
}

}  // namespace sluice
