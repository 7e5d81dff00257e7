#include "text/constraint.h"

#include "text/grammar_mask.h"
#include "text/json_grammar.h"
#include "text/regex_grammar.h"

namespace sluice {

ConstraintPtr compile_grammar(Grammar grammar, VocabularyPtr vocabulary) {
  return std::make_shared<CompiledConstraint>(std::move(grammar), std::move(vocabulary));
}

ConstraintPtr compile_json_schema(const OrderedJson& schema, VocabularyPtr vocabulary,
                                  std::string_view what) {
  GrammarBuilder builder{std::string(what)};
  const RuleId start = builder.rule("start", json_schema_grammar(builder, schema));
  return compile_grammar(builder.build(start), std::move(vocabulary));
}

ConstraintPtr compile_json_object(VocabularyPtr vocabulary) {
  return compile_json_schema({{"type", "object"}}, std::move(vocabulary), "json_object");
}

ConstraintPtr compile_regex(std::string_view pattern, VocabularyPtr vocabulary,
                            std::string_view what) {
  GrammarBuilder builder{std::string(what)};
  const RuleId start = builder.rule("start", regex_grammar(builder, pattern));
  return compile_grammar(builder.build(start), std::move(vocabulary));
}

}  // namespace sluice
