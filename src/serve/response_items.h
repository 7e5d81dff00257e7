// The items of a Responses conversation: what comes in, and the messages that a template takes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "serve/fields.h"
#include "serve/response_tools.h"

namespace sluice {

/// Finds the item that an item_reference names.
using FindItem = std::function<std::optional<OrderedJson>(const std::string& id)>;

/// "input" (a string or an array) as items in their full form, each with an id: checked, contents
/// as arrays of parts, references replaced. Throws ApiError.
OrderedJson read_response_input(const Fields& body, const FindItem& find_item);

/// Gives `tools` what items of the conversation bring along.
void add_item_tools(const OrderedJson& items, ResponseTools& tools);

/// The items as messages of a chat completion; `instructions` come first. What a model made in one
/// turn (reasoning, text, calls) becomes one message; items of hosted tools are left out, and those
/// before a compaction, which stands for them. Throws ApiError, e.g. for an output of a call that
/// nobody made.
OrderedJson response_messages(const OrderedJson& items, const std::string& instructions);

/// Text in the opaque form of `encrypted_content`. It is not secret: it only says that it is ours.
std::string seal_text(const std::string& text);
/// The text; throws ApiError naming `param` unless this server sealed it.
std::string open_text(const std::string& sealed, const std::string& param);

}  // namespace sluice
