// Constraints that begin in the middle of an answer.
#pragma once

#include <memory>
#include <string>

#include "text/constraint.h"

namespace sluice {

/// Everything is allowed up to the first `marker`, as the vocabulary writes its tokens; behind it
/// `rest` holds. A token that goes on behind the marker's end is as free as before.
std::unique_ptr<TokenConstraint> constrain_after_marker(std::string marker,
                                                        VocabularyPtr vocabulary,
                                                        std::unique_ptr<TokenConstraint> rest);

}  // namespace sluice
