// For tests: a vocabulary of the end token 0 and a token for each byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/constraint.h"

namespace sluice {

/// Token 1 + b is byte b.
inline VocabularyPtr byte_vocabulary() {
  static const VocabularyPtr shared = [] {
    std::vector<std::string> texts{"</s>"};
    for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<VocabularyTrie>(texts, std::vector<int32_t>{0});
  }();
  return shared;
}

}  // namespace sluice
