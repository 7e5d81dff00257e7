// Finds the end of a JSON value in a stream of characters.
#pragma once

namespace sluice {

class JsonScanner {
 public:
  enum class Result {
    kInside,  // the character belongs to the value, which goes on
    kLast,    // the character belongs to the value and ends it
    kBehind,  // the value ended before the character
  };
  /// The first character must not be white space. Nothing is checked but quotes and brackets.
  Result push(char c);

 private:
  int depth_ = 0;
  bool begun_ = false, in_string_ = false, escaped_ = false, scalar_ = false;
};

}  // namespace sluice
