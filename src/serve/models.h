// What clients can call: the served models, and tiers, which are models under other names with
// prices and limits of their own.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/openai.h"

namespace sluice {

class Models {
 public:
  Models() = default;
  Models(Models&&) = default;  // entries stay where they are
  Models& operator=(Models&&) = default;

  /// The first one answers requests that name no model. Throws kInvalidInput if the name is taken.
  void add(ServedModel model);

  /// Tiers from JSON: an object of names. A text is another name of an entry; an object has
  ///   model       the served model; left out if the name is that of a served model, which is then
  ///               changed itself
  ///   effort      of requests that name none: none, minimal, low, medium, high, xhigh or max
  ///   context     most tokens of prompt and answer together, at most the model's
  ///   max_tokens  of an answer whose request names no limit
  ///   temperature, top_p  of requests that name none, instead of the model's own
  ///   price       per million tokens: input, cached, output; and factors on them for the service
  ///               tiers: priority, flex
  /// `what` (a file name) starts every error. Throws kInvalidInput.
  void add_tiers(const Json& tiers, const std::string& what);

  bool empty() const { return entries_.empty(); }
  /// What `name` stands for; an empty name is the first model. Throws ApiError
  /// (model_not_found).
  const ServedModel& find(const std::string& name) const;
  /// The served models and their tiers.
  std::vector<const ServedModel*> entries() const;
  /// Without tiers.
  std::vector<const ServedModel*> served() const;

  /// The bodies of GET /v1/models and /v1/models/NAME. Throws ApiError (model_not_found).
  OrderedJson list() const;
  OrderedJson describe(const std::string& name) const;

 private:
  const ServedModel& named(const std::string& name) const;
  ServedModel* find_served(const std::string& name);
  void add_tier(const std::string& name, const Config& config);
  void add_name(const std::string& name, const std::string& target, const std::string& what);

  std::deque<ServedModel> entries_;            // calls hold pointers to them
  std::map<std::string, ServedModel*> names_;  // entries, and other names of theirs
};

}  // namespace sluice
