// Anthropic's Messages API.
#pragma once

#include "base/json.h"
#include "serve/openai.h"

namespace sluice {

/// POST /v1/messages; throws ApiError before anything is sent.
void create_message(const OrderedJson& body, const Call& call);
/// POST /v1/messages/count_tokens; throws ApiError.
void count_message_tokens(const OrderedJson& body, const Call& call);

/// An error in the form that this API's clients read as well.
HttpResponse messages_error(HttpResponse error);

}  // namespace sluice
