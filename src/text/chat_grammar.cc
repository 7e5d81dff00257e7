#include "text/chat_grammar.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "text/json_grammar.h"
#include "text/lark.h"
#include "text/regex_grammar.h"
#include "text/tokenizer.h"
#include "text/vocabulary_trie.h"

namespace sluice {
namespace {

constexpr int kMaxCalls = 16;
constexpr const char* kPlain = "plain";

std::string quoted(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// A marker as the vocabulary writes it: a special token, or text.
std::string marker_text(const std::string& marker, const Tokenizer& tokenizer) {
  const auto token = tokenizer.find(marker);
  const bool special = token && tokenizer.is_special(*token);
  return special ? VocabularyTrie::special_text(*token) : marker;
}

bool can_be_grammar(const OrderedJson& schema) {
  try {
    GrammarBuilder builder("schema");
    builder.build(builder.rule("arguments", json_schema_grammar(builder, schema)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

class AnswerBuilder {
 public:
  AnswerBuilder(GrammarBuilder& builder, const ChatFormat& format, const Tokenizer& tokenizer)
      : b_(builder), format_(format), tokenizer_(tokenizer) {}

  Expr answer(const AnswerGrammar& answer);

 private:
  Expr marker(const std::string& text) { return b_.literal(marker_text(text, tokenizer_)); }
  Expr words(std::vector<Expr> parts) { return b_.sequence(std::move(parts)); }
  Expr calls(const AnswerGrammar& answer);
  Expr call(const ChatTool& tool);
  Expr arguments(const ChatTool& tool);
  Expr input(const ChatTool& tool);
  Expr json_call(const ChatTool& tool, const char* key);
  Expr xml_call(const ChatTool& tool);
  Expr xml_value(const OrderedJson& schema, const OrderedJson& property);
  Expr marked_call(const ChatTool& tool);
  Expr harmony(std::vector<Expr> messages);

  GrammarBuilder& b_;
  const ChatFormat& format_;
  const Tokenizer& tokenizer_;
  bool free_arguments_ = false;
};

Expr AnswerBuilder::input(const ChatTool& tool) {
  if (tool.grammar_is_regex) {
    return regex_grammar(b_, tool.grammar, {.what = "", .json_string = true});
  }
  return lark_grammar(b_, tool.grammar, /*json_string=*/true);
}

Expr AnswerBuilder::arguments(const ChatTool& tool) {
  const std::string what = b_.what();
  b_.set_what(fmt::format("tool {}", tool.name));
  Expr result = 0;
  const bool is_free = free_arguments_ && !tool.strict && !tool.is_custom;
  // Models that were not trained to call tools need the schema, unless it asks for too much.
  if (is_free && !(format_.family == kPlain && can_be_grammar(arguments_schema(tool)))) {
    result = json_schema_grammar(b_, {{"type", "object"}});
  } else if (tool.grammar.empty()) {
    result = json_schema_grammar(b_, arguments_schema(tool));
  } else {
    result = words({b_.literal("{\"input\": \""), input(tool), b_.literal("\"}")});
  }
  b_.set_what(what);
  return result;
}

Expr AnswerBuilder::json_call(const ChatTool& tool, const char* key) {
  return words({b_.literal(fmt::format("{{\"name\": {}, \"{}\": ", quoted(tool.name), key)),
                arguments(tool), b_.literal("}")});
}

Expr AnswerBuilder::xml_value(const OrderedJson& schema, const OrderedJson& property) {
  OrderedJson own = property;
  if (own.is_object() && own.contains("type") && own["type"] == "string") {
    if (!own.contains("enum")) return regex_grammar(b_, "([^<]|<[^/])*");
    std::vector<std::string> texts;
    for (const OrderedJson& text : own["enum"]) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
    return b_.literals(std::move(texts));
  }
  // References within the property lead to the schema's definitions.
  for (const char* key : {"$defs", "definitions"}) {
    if (own.is_object() && schema.contains(key)) own[key] = schema[key];
  }
  return json_schema_grammar(b_, own);
}

Expr AnswerBuilder::xml_call(const ChatTool& tool) {
  const OrderedJson schema = arguments_schema(tool);
  std::vector<Expr> parts = {b_.literal("\n<function=" + tool.name + ">\n")};
  const OrderedJson required = schema.value("required", OrderedJson::array());
  const OrderedJson properties = schema.value("properties", OrderedJson::object());
  for (const auto& [name, property] : properties.items()) {
    const Expr parameter = words({b_.literal("<parameter=" + name + ">\n"),
                                  xml_value(schema, property), b_.literal("\n</parameter>\n")});
    const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
    parts.push_back(is_required ? parameter : b_.optional(parameter));
  }
  parts.push_back(b_.literal("</function>\n"));
  return words(std::move(parts));
}

Expr AnswerBuilder::marked_call(const ChatTool& tool) {
  if (format_.fenced) {
    return words({b_.literal("function"), marker(format_.separator),
                  b_.literal(tool.name + "\n```json\n"), arguments(tool), b_.literal("\n```")});
  }
  Expr name = b_.literal(tool.name);
  if (format_.family == "kimi") {
    name = words({b_.literal("functions." + tool.name + ":"), regex_grammar(b_, "[0-9]{1,2}")});
  }
  return words({name, marker(format_.separator), arguments(tool)});
}

/// Without the opening marker.
Expr AnswerBuilder::call(const ChatTool& tool) {
  switch (format_.calls) {
    case ChatFormat::Calls::kJson: {
      // As the template shows calls; the plain form has no line breaks.
      const Expr gap = b_.literal(format_.family == kPlain ? "" : "\n");
      return words({gap, json_call(tool, "arguments"), gap, marker(format_.close)});
    }
    case ChatFormat::Calls::kArray:
      return json_call(tool, "arguments");
    case ChatFormat::Calls::kBare:
      return json_call(tool, "parameters");
    case ChatFormat::Calls::kXml:
      return words({xml_call(tool), marker(format_.close)});
    case ChatFormat::Calls::kMarked:
      return words({marked_call(tool), marker(format_.close)});
    case ChatFormat::Calls::kHarmony:
      break;
  }
  return words({marker("<|channel|>"), b_.literal("commentary to=functions." + tool.name + " "),
                marker("<|constrain|>"), b_.literal("json"), marker("<|message|>"),
                arguments(tool)});
}

Expr AnswerBuilder::calls(const AnswerGrammar& answer) {
  std::vector<Expr> choices;
  for (const ChatTool& tool : answer.tools) choices.push_back(call(tool));
  const Expr one = b_.call(b_.rule("call", b_.choice(std::move(choices))));
  const bool is_array = format_.calls == ChatFormat::Calls::kArray;
  const bool is_marked = format_.calls == ChatFormat::Calls::kMarked;
  const bool has_open = !is_array && format_.calls != ChatFormat::Calls::kBare &&
                        format_.calls != ChatFormat::Calls::kHarmony;
  const Expr open = has_open ? marker(format_.open) : b_.empty();
  Expr all = one;
  if (answer.parallel && (has_open || is_array)) {
    const Expr between = b_.literal(is_array ? ", " : is_marked ? "" : "\n");
    // Models that were not trained to call tools would go on and on.
    const int most = format_.family == kPlain ? int(answer.tools.size()) : kMaxCalls;
    all = words({one, b_.repeat(words({between, open, one}), 0, most - 1)});
  }
  if (is_array) all = words({b_.literal("["), all, b_.literal("]")});
  all = words({all, marker(format_.calls_close)});
  if (answer.behind_open) return all;
  return words({marker(format_.calls_open), is_array ? marker(format_.open) : open, all});
}

/// Thinking may come before, in a message of its own.
Expr AnswerBuilder::harmony(std::vector<Expr> messages) {
  const Expr thinking = words({marker("<|channel|>"), b_.literal("analysis"), marker("<|message|>"),
                               b_.repeat(b_.characters({{0, 0x10FFFF}}), 0, -1), marker("<|end|>"),
                               marker("<|start|>"), b_.literal("assistant")});
  return words({b_.optional(thinking), b_.choice(std::move(messages))});
}

Expr AnswerBuilder::answer(const AnswerGrammar& answer) {
  const bool is_harmony = format_.calls == ChatFormat::Calls::kHarmony;
  free_arguments_ = answer.behind_open;
  std::vector<Expr> choices;
  if (!answer.tools.empty()) choices.push_back(calls(answer));
  if (answer.text) {
    Expr text = answer.text(b_);
    if (is_harmony) {
      text = words({marker("<|channel|>"), b_.literal("final"), marker("<|message|>"), text});
    }
    choices.push_back(text);
  }
  return is_harmony ? harmony(std::move(choices)) : b_.choice(std::move(choices));
}

}  // namespace

Grammar answer_grammar(const std::string& what, const ChatFormat& format,
                       const AnswerGrammar& answer, const Tokenizer& tokenizer) {
  GrammarBuilder builder(what);
  const Expr all = AnswerBuilder(builder, format, tokenizer).answer(answer);
  Grammar grammar = builder.build(builder.rule("answer", all));
  if (answer.behind_open) grammar.marker = marker_text(format.open, tokenizer);
  return grammar;
}

}  // namespace sluice
