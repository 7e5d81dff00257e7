// A body of POST /v1/responses, decoded.
#pragma once

#include <string>

#include "base/json.h"
#include "serve/chat.h"
#include "serve/fields.h"
#include "serve/response_items.h"
#include "serve/response_tools.h"

namespace sluice {

struct ResponseRequest {
  ChatRequest chat;
  /// The response object with all its fields, before anything was generated.
  OrderedJson resource;
  OrderedJson input;  // the request's own items, in full form
  ResponseTools tools;
  bool stream = false, store = true, background = false;
  bool seal_reasoning = false;  // encrypted_content was asked for
  bool scored = false;          // log probabilities were asked for
};

/// `history`: the items of the conversation before. Throws ApiError.
ResponseRequest read_response_request(const Fields& body, const ServedModel& model,
                                      OrderedJson history, const FindItem& find_item);

}  // namespace sluice
