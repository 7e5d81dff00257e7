// The prompt of a chat request: messages and tools through the model's template.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serve/fields.h"
#include "serve/openai.h"

namespace sluice {

/// The messages as templates want them: contents are texts, developers are systems, arguments of
/// calls are objects. Throws ApiError.
OrderedJson read_messages(const Fields& body);

/// The tokens of the prompt that `body` (messages, tools, reasoning_effort, ...) describes. Throws
/// ApiError.
std::vector<Token> chat_prompt(const Fields& body, const ServedModel& model);

}  // namespace sluice
