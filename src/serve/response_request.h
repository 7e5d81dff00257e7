// A body of POST /v1/responses, decoded.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "serve/chat.h"
#include "serve/fields.h"
#include "serve/response_items.h"
#include "serve/response_tools.h"

namespace sluice {

/// A conversation that is to be summarised before it goes on.
struct Compaction {
  OrderedJson items = {};  // all of them
  std::string instructions = {};
  size_t n_unanswered = 0;    // messages at the end that are kept as they are
  int64_t n_kept_tokens = 0;  // that the user's own words may take, newest first
  bool only = false;          // no answer is wanted
};

struct ResponseRequest {
  ChatRequest chat;
  /// The response object with all its fields, before anything was generated.
  OrderedJson resource;
  OrderedJson input;  // the request's own items, in full form
  ResponseTools tools;
  bool stream = false, store = true, background = false;
  bool seal_reasoning = false;  // encrypted_content was asked for
  bool scored = false;          // log probabilities were asked for
  std::optional<Compaction> compaction;

  bool truncates() const { return resource["truncation"] == "auto"; }
};

/// `history`: the items of the conversation before. Throws ApiError.
ResponseRequest read_response_request(const Fields& body, const ServedModel& model,
                                      OrderedJson history, const FindItem& find_item);

}  // namespace sluice
