// --jsonl: one JSON value per line in, one per line out.
#pragma once

#include <functional>

#include "base/json.h"

namespace sluice {

/// Calls `answer` for every line of standard input and prints what it returns at once, so that a
/// program may wait for it. A line that cannot be answered gives {"error": message}.
void serve_lines(const std::function<OrderedJson(const OrderedJson&)>& answer);

}  // namespace sluice
