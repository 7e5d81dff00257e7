// The body of POST /v1/messages (Anthropic's Messages API) as a ChatRequest.
#pragma once

#include "serve/chat.h"
#include "serve/fields.h"

namespace sluice {

/// What the conversation says: system, messages, tools, tool_choice, thinking, output_config. Marks
/// like cache_control and context_management need nothing: every prefix is cached anyway. Tools
/// that Anthropic's servers run are left out. Throws ApiError.
ChatRequest read_conversation(const Fields& body);

}  // namespace sluice
