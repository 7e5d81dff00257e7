// Checks published claims: whether some set of the numbers that were not published satisfies them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace sluice {

/// "consistent": some set inside the stated ranges satisfies the claim (never: confirmed).
/// "inconsistent": none does, even at the ends of all ranges. "circular": another claim of the same
/// set gives the value, by a published fit and within its error, and nothing independent does: it
/// supports nothing. "undetermined": the ranges allow both.
struct Verdict {
  std::string id, claim, kind, source, date;
  std::string verdict;
  std::string why;                // the arithmetic
  std::vector<std::string> sets;  // hidden parameters that satisfy it, or what would decide
};

/// {"claims": [{"id", "claim", "kind", "source", "check": {"type", ...}}]}; the types and their
/// fields are in docs/planner-model.md. Throws kInvalidInput naming claim and field.
std::vector<Verdict> check_claims(const Json& json, const std::string& what);

OrderedJson to_json(const std::vector<Verdict>& verdicts);

/// claims/: what is said about GPT-5.6 Sol and the machines it is said to run on.
Json shipped_claims();

}  // namespace sluice
