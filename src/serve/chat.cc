#include "serve/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serve/chat_constraints.h"
#include "serve/chat_prompt.h"
#include "serve/stop_filter.h"
#include "text/chat_grammar.h"
#include "text/chat_parser.h"
#include "text/json_grammar.h"
#include "text/lark.h"
#include "text/regex_grammar.h"
#include "text/thinking.h"

namespace sluice {
namespace {

/// The tools that the answer may call.
std::vector<ChatTool> callable_tools(const ChatRequest& request) {
  std::vector<ChatTool> tools;
  if (request.tool_choice == ToolChoice::kNone) return tools;
  for (const ChatTool& tool : request.tools) {
    const bool wanted = request.tool_choice == ToolChoice::kNamed
                            ? tool.name == request.named_tool
                            : request.allowed_tools.empty() ||
                                  std::ranges::count(request.allowed_tools, tool.name) > 0;
    if (wanted) tools.push_back(tool);
  }
  return tools;
}

/// Whether the answer must be calls.
bool is_forced(const ChatRequest& request) {
  return request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed;
}

/// The answers of one request: text in, deltas out. Lives on the engine's thread.
class ChatTurn {
 public:
  ChatTurn(const ServedModel& model, const ChatRequest& request, bool thinking, ChatSinks sinks)
      : format_(model.format),
        max_calls_(request.parallel_calls ? request.max_calls : 1),
        calls_are_marked_(format_.calls != ChatFormat::Calls::kBare || is_forced(request)),
        sinks_(std::move(sinks)) {
    tools_ = callable_tools(request);
    for (int i = 0; i < request.generation.n; ++i) {
      choices_.push_back(
          std::make_unique<Choice>(format_, tools_, thinking, request.generation.stop));
    }
  }
  ChatTurn(const ChatTurn&) = delete;
  ChatTurn& operator=(const ChatTurn&) = delete;

  bool piece(Piece piece);
  void done(const GenerationError& error, const Usage& usage) {
    static_cast<Usage&>(usage_) = usage;
    sinks_.done(error, usage_);
  }

 private:
  struct Choice {
    Choice(const ChatFormat& format, const std::vector<ChatTool>& tools, bool thinking,
           const std::vector<std::string>& stops)
        : parser(format, tools, thinking), filter(stops) {}
    ChatParser parser;
    StopFilter filter;
    bool ended = false;  // by a stop text or by its only call
  };

  void add(Choice& choice, ChatDelta delta, std::vector<ChatDelta>& deltas);
  void flush(Choice& choice, std::vector<ChatDelta>& deltas);

  ChatFormat format_;
  std::vector<ChatTool> tools_;
  int64_t max_calls_;
  bool calls_are_marked_;  // the beginning of a call is no answer in JSON
  ChatSinks sinks_;
  ChatUsage usage_;
  std::vector<std::unique_ptr<Choice>> choices_;
};

/// Text that was held back as the possible start of a stop text.
void ChatTurn::flush(Choice& choice, std::vector<ChatDelta>& deltas) {
  ChatDelta held;
  held.text = choice.filter.finish();
  if (!held.text.empty()) deltas.push_back(std::move(held));
}

/// Stop texts are looked for in what is answered, not in thinking or calls.
void ChatTurn::add(Choice& choice, ChatDelta delta, std::vector<ChatDelta>& deltas) {
  if (choice.ended) return;
  if (delta.kind == ChatDelta::Kind::kText) {
    delta.text = choice.filter.push(delta.text);
    choice.ended = choice.filter.stopped();
    if (delta.text.empty()) return;
  } else {
    flush(choice, deltas);
  }
  if (delta.kind == ChatDelta::Kind::kCallBegin) delta.id = make_id("call_");
  if (delta.kind == ChatDelta::Kind::kCallEnd) {
    choice.ended = delta.call + 1 >= max_calls_;
  }
  deltas.push_back(std::move(delta));
}

bool ChatTurn::piece(Piece piece) {
  Choice& choice = *choices_[size_t(piece.choice)];
  ChatPiece result;
  result.choice = piece.choice;
  const bool was_thinking = choice.parser.thinking();
  std::vector<ChatDelta> parts = choice.parser.push(piece.text);
  const bool thinks = was_thinking || choice.parser.thinking();
  if (thinks) usage_.reasoning_tokens += piece.n_tokens;
  for (ChatDelta& part : parts) add(choice, std::move(part), result.deltas);
  if (piece.finish != FinishReason::kNone) {
    const bool cut = piece.finish == FinishReason::kLength && calls_are_marked_ && !tools_.empty();
    for (ChatDelta& part : choice.parser.finish(cut)) add(choice, std::move(part), result.deltas);
    if (!choice.ended) flush(choice, result.deltas);
  }
  if (choice.ended || piece.finish != FinishReason::kNone) {
    const bool cut = !choice.ended && piece.finish == FinishReason::kLength;
    result.finish = cut                           ? ChatFinish::kLength
                    : choice.parser.n_calls() > 0 ? ChatFinish::kToolCalls
                                                  : ChatFinish::kStop;
    result.stop = choice.filter.stopped() ? choice.filter.stop_text() : std::move(piece.stop);
  }
  if (!thinks) result.scores = std::move(piece.scores);
  const bool goes_on = !choice.ended;
  if (!result.deltas.empty() || !result.scores.empty() || result.finish != ChatFinish::kNone) {
    sinks_.piece(std::move(result));
  }
  return goes_on;
}

/// Tokens of thinking that an effort allows; -1: any number.
int64_t thinking_budget(const std::optional<std::string>& effort) {
  if (!effort) return -1;
  if (*effort == "none") return 0;
  if (*effort == "minimal") return 512;
  if (*effort == "low") return 2048;
  if (*effort == "medium") return 8192;
  if (*effort == "high") return 24576;
  return -1;
}

/// Whether one of the tools demands good calls even if nothing demands a call.
bool is_demanding(const std::vector<ChatTool>& tools) {
  return std::ranges::any_of(
      tools, [](const ChatTool& tool) { return tool.strict || !tool.grammar.empty(); });
}

/// What the answer may be; nothing set: anything.
AnswerGrammar answer_rules(const ChatRequest& request, const ChatFormat& format) {
  AnswerGrammar answer;
  answer.parallel = request.parallel_calls && request.tool_choice != ToolChoice::kNamed;
  const AnswerFormat& text = request.format;
  const bool forced = is_forced(request);
  const bool has_text = text.kind != AnswerFormat::Kind::kText && !forced;
  answer.tools = callable_tools(request);
  if (!forced && !has_text) {
    // A call that the model begins by itself must be a good one where the tool demands that, or
    // where the model was not trained to call tools.
    answer.behind_open = true;
    const bool has_open = !format.open.empty() && format.calls != ChatFormat::Calls::kBare;
    const bool plain = format.family == "plain" && !request.generation.request.ignore_end;
    const bool guided = plain || is_demanding(answer.tools);
    if (!guided || !has_open) answer.tools.clear();
  }
  if (!has_text) return answer;
  answer.text = [&text](GrammarBuilder& builder) {
    switch (text.kind) {
      case AnswerFormat::Kind::kRegex:
        return regex_grammar(builder, text.grammar);
      case AnswerFormat::Kind::kLark:
        return lark_grammar(builder, text.grammar);
      case AnswerFormat::Kind::kJsonSchema:
        return json_schema_grammar(builder, text.schema);
      case AnswerFormat::Kind::kJsonObject:
      case AnswerFormat::Kind::kText:
        break;
    }
    return json_schema_grammar(builder, {{"type", "object"}});
  };
  return answer;
}

/// Two requests with the same key want the same grammar.
std::string grammar_key(const AnswerGrammar& answer, const AnswerFormat& format) {
  OrderedJson key = {answer.parallel, answer.behind_open, answer.text != nullptr};
  if (answer.text) key.push_back({int(format.kind), format.schema, format.grammar});
  for (const ChatTool& tool : answer.tools) {
    key.push_back(
        {tool.name, arguments_schema(tool), tool.grammar, tool.grammar_is_regex, tool.strict});
  }
  return dump(key);
}

using ConstraintMaker = std::function<std::unique_ptr<TokenConstraint>()>;

/// Of the answer behind the thinking; nullptr: anything goes.
ConstraintMaker compile(const ChatRequest& request, const ServedModel& model) {
  const AnswerGrammar answer = answer_rules(request, model.format);
  if (answer.tools.empty() && !answer.text) return nullptr;
  const std::string param = answer.text ? request.format.param : "tools";
  ConstraintPtr compiled;
  try {
    compiled = model.constraints->get(grammar_key(answer, request.format), [&] {
      return answer_grammar(param, model.format, answer, *model.tokenizer);
    });
  } catch (const Error& error) {
    if (answer.behind_open && !is_demanding(answer.tools)) return nullptr;
    const bool of_tool = std::string_view(error.what()).starts_with("tool ");
    throw ApiError(400, error.what(), of_tool ? "tools" : param, "invalid_grammar");
  }
  return [compiled] { return start_constraint(compiled); };
}

void check_tools(const ChatRequest& request) {
  const auto is_known = [&](const std::string& name) {
    return std::ranges::count(request.tools, name, &ChatTool::name) > 0;
  };
  if (request.tool_choice == ToolChoice::kRequired && request.tools.empty()) {
    throw ApiError(400, "tool_choice: expected tools to choose from, got none", "tool_choice");
  }
  std::vector<std::string> names = request.allowed_tools;
  if (request.tool_choice == ToolChoice::kNamed) names.push_back(request.named_tool);
  for (const std::string& name : names) {
    if (is_known(name)) continue;
    throw ApiError(400,
                   fmt::format("tool_choice: expected the name of one of the tools, got \"{}\"",
                               name.substr(0, 100)),
                   "tool_choice");
  }
}

/// The constraint of every choice, if there is one.
std::function<std::shared_ptr<TokenConstraint>()> constraint_maker(const ChatRequest& request,
                                                                   const ServedModel& model,
                                                                   bool thinking) {
  ConstraintMaker answer = compile(request, model);
  const int64_t budget = thinking_budget(request.effort);
  if (model.format.think_close.empty()) {
    if (!answer) return nullptr;
    return answer;
  }
  if (!answer && budget < 0) return nullptr;
  ThinkingRules rules =
      thinking_rules(model.format, *model.tokenizer, model.constraints->vocabulary());
  rules.begun = thinking;
  rules.budget = budget;
  return [answer, shared = std::make_shared<const ThinkingRules>(std::move(rules))] {
    return constrain_after_thinking(shared, answer ? answer() : nullptr);
  };
}

}  // namespace

void prepare_chat(ServedModel& model, std::string_view template_text) {
  model.format = detect_chat_format(template_text);
  for (Token token = 0; token < model.tokenizer->vocab_size(); ++token) {
    model.longest_token = std::max(model.longest_token, model.tokenizer->token_bytes(token).size());
  }
  model.chat_end_tokens = model.end_tokens;
  if (model.format.calls == ChatFormat::Calls::kHarmony) {
    // The end of a message is not the end of the turn.
    model.chat_end_tokens.clear();
    for (const char* name : {"<|return|>", "<|call|>"}) {
      if (const auto token = model.tokenizer->find(name)) model.chat_end_tokens.push_back(*token);
    }
  }
  model.constraints =
      std::make_shared<ConstraintCache>(*model.tokenizer, model.vocab, model.chat_end_tokens);
}

std::shared_ptr<Generation> start_chat(const ServedModel& model, ChatRequest request,
                                       ChatSinks sinks) {
  check_tools(request);
  if (!request.effort && !model.effort.empty()) request.effort = model.effort;
  const RenderedChat rendered = render_chat(request, model);
  GenerationRequest generation = request.generation;
  generation.prompts = {rendered.tokens};
  generation.request.max_tokens =
      answer_limit(model, rendered.tokens.size(), request.max_tokens, request.messages_param);
  generation.request.end_tokens = model.chat_end_tokens;
  // Scores are cut at stop texts where the answer is but text.
  const bool parsed = !request.tools.empty() || !model.format.think_close.empty() ||
                      model.format.calls == ChatFormat::Calls::kHarmony;
  (parsed ? generation.stop : request.generation.stop).clear();
  generation.visible = marker_tokens(model.format, *model.tokenizer);
  generation.constrain = constraint_maker(request, model, rendered.thinking);
  if (generation.constrain) generation.request.ignore_end = false;
  if (sinks.accepted) sinks.accepted(int64_t(rendered.tokens.size()));
  const auto turn = std::make_shared<ChatTurn>(model, request, rendered.thinking, std::move(sinks));
  return start_generation(
      model, std::move(generation),
      {[turn](Piece piece) { return turn->piece(std::move(piece)); },
       [turn](const GenerationError& error, const Usage& usage) { turn->done(error, usage); }});
}

}  // namespace sluice
