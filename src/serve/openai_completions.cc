// POST /v1/completions: continues plain text.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "serve/openai.h"
#include "text/detokenizer.h"

namespace sluice {
namespace {

constexpr size_t kMaxPrompts = 128;
constexpr int kMaxChoices = 128;
constexpr int kMaxTopLogprobs = 20;
constexpr int kUsualTokens = 16;  // what OpenAI's API generates by default

struct CompletionOptions {
  std::string id = make_id("cmpl-");
  int64_t created = unix_seconds();
  bool stream = false, include_usage = false, echo = false, scored = false;
  int n = 1, best_of = 1, n_top = 0;
  std::vector<std::vector<Token>> prompts;
  std::vector<std::string> texts;  // of the prompts, for echo
};

/// Whether a prompt's token is text; what the tokenizer puts before all texts is not.
bool is_prompt_text(const Tokenizer& tokenizer, const std::vector<Token>& prompt, size_t i) {
  return i > 0 || prompt[0] != tokenizer.bos();
}

/// A character that the prompt leaves unfinished is the answer's.
std::string prompt_text(const Tokenizer& tokenizer, const std::vector<Token>& prompt) {
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (is_prompt_text(tokenizer, prompt, i)) text += detokenizer.push(prompt[i]);
  }
  return text;
}

size_t count_characters(std::string_view text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// The arrays that this endpoint has for log-probabilities.
class LegacyLogprobs {
 public:
  /// `before`: what the text goes on from.
  LegacyLogprobs(const Tokenizer& tokenizer, std::span<const Token> before)
      : tokenizer_(tokenizer), detokenizer_(tokenizer) {
    detokenizer_.follow(before);
  }

  void add(Token token, bool has_text, const OrderedJson& logprob,
           const std::vector<TokenScore>& top) {
    const std::string text = token_text(tokenizer_, token);
    tokens_.push_back(text);
    logprobs_.push_back(logprob);
    OrderedJson best = OrderedJson::object();
    for (const TokenScore& other : top) best[token_text(tokenizer_, other.token)] = other.logprob;
    top_.push_back(logprob.is_null() ? OrderedJson() : std::move(best));
    offsets_.push_back(offset_);
    if (has_text) offset_ += count_characters(detokenizer_.push(token));
  }
  /// What was added since the last call.
  OrderedJson take() {
    OrderedJson json = {{"tokens", std::exchange(tokens_, OrderedJson::array())},
                        {"token_logprobs", std::exchange(logprobs_, OrderedJson::array())},
                        {"top_logprobs", std::exchange(top_, OrderedJson::array())},
                        {"text_offset", std::exchange(offsets_, OrderedJson::array())}};
    return json;
  }

 private:
  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  OrderedJson tokens_ = OrderedJson::array(), logprobs_ = OrderedJson::array();
  OrderedJson top_ = OrderedJson::array(), offsets_ = OrderedJson::array();
  size_t offset_ = 0;
};

/// Collects the choices, or sends them as they come.
class Completion {
 public:
  Completion(Call call, CompletionOptions options)
      : call_(std::move(call)), options_(std::move(options)) {
    for (const std::vector<Token>& prompt : options_.prompts) {
      const std::span<const Token> before(prompt.data(), options_.echo ? 0 : prompt.size());
      for (int i = 0; i < options_.best_of; ++i) {
        choices_.push_back(Choice{LegacyLogprobs(*call_.model->tokenizer, before)});
      }
    }
  }

  void piece(Piece piece) {
    Choice& choice = choices_[size_t(piece.choice)];
    std::string text;
    if (!std::exchange(choice.begun, true) && options_.echo) {
      const size_t prompt = size_t(piece.choice / options_.best_of);
      text = options_.texts[prompt];
      if (options_.scored) add_prompt(choice, prompt, piece.prompt_logprobs);
    }
    text += piece.text;
    for (const ScoredToken& score : piece.scores) {
      const bool has_text = !call_.model->tokenizer->is_special(score.token);
      choice.logprobs.add(score.token, has_text, score.logprob, score.top);
      choice.sum += score.logprob;
      ++choice.n_tokens;
    }
    choice.text += text;
    choice.finish = piece.finish;
    if (options_.stream) send(piece.choice, text, piece.finish);
  }

  void done(const GenerationError& error, const Usage& usage) {
    HttpExchange& exchange = *call_.exchange;
    if (!error.empty()) {
      HttpResponse response = http_error(error);
      if (!options_.stream) return exchange.respond(std::move(response));
      exchange.send("data: " + response.body + "\n\n");
      return exchange.finish();
    }
    OrderedJson answer = base();
    answer["choices"] = OrderedJson::array();
    if (options_.stream) {
      if (options_.include_usage) {
        answer["usage"] = usage_json(usage);
        exchange.send(event_of(answer));
      }
      exchange.send("data: [DONE]\n\n");
      return exchange.finish();
    }
    for (const int i : best_choices()) {
      Choice& choice = choices_[size_t(i)];
      answer["choices"].push_back(
          choice_json(int(answer["choices"].size()), choice, choice.text, choice.finish));
    }
    answer["usage"] = usage_json(usage);
    exchange.respond({200, dump(answer)});
  }

 private:
  struct Choice {
    LegacyLogprobs logprobs;
    std::string text = {};
    bool begun = false;
    double sum = 0;
    int n_tokens = 0;
    FinishReason finish = FinishReason::kNone;
  };

  OrderedJson base() const {
    return {{"id", options_.id},
            {"object", "text_completion"},
            {"created", options_.created},
            {"model", call_.model->name}};
  }

  OrderedJson choice_json(int index, Choice& choice, const std::string& text, FinishReason finish) {
    OrderedJson json = {{"index", index}, {"text", text}, {"logprobs", nullptr}};
    if (options_.scored) json["logprobs"] = choice.logprobs.take();
    const bool ended = finish != FinishReason::kNone;
    json["finish_reason"] = ended ? OrderedJson(finish_reason_name(finish)) : OrderedJson();
    return json;
  }

  void send(int index, const std::string& text, FinishReason finish) {
    OrderedJson chunk = base();
    chunk["choices"] =
        OrderedJson::array({choice_json(index, choices_[size_t(index)], text, finish)});
    if (options_.include_usage) chunk["usage"] = nullptr;
    call_.exchange->send(event_of(chunk));
  }

  void add_prompt(Choice& choice, size_t prompt, const std::vector<float>& scores) {
    const std::vector<Token>& tokens = options_.prompts[prompt];
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool known = i > 0 && i - 1 < scores.size();  // nothing stands before the first token
      const bool has_text = is_prompt_text(*call_.model->tokenizer, tokens, i);
      if (!known) {
        choice.logprobs.add(tokens[i], has_text, OrderedJson(), {});
        continue;
      }
      // The engine scores what the prompt has, not what it might have had.
      std::vector<TokenScore> top;
      if (options_.n_top > 0) top.push_back({tokens[i], scores[i - 1]});
      choice.logprobs.add(tokens[i], has_text, scores[i - 1], top);
    }
  }

  /// Of each prompt the n choices with the best mean log-probability, in order.
  std::vector<int> best_choices() const {
    std::vector<int> result;
    for (size_t p = 0; p < options_.prompts.size(); ++p) {
      std::vector<int> order(size_t(options_.best_of));
      std::iota(order.begin(), order.end(), int(p) * options_.best_of);
      const auto mean = [this](int i) {
        const Choice& choice = choices_[size_t(i)];
        return choice.n_tokens > 0 ? choice.sum / choice.n_tokens : 0.0;
      };
      if (options_.best_of > options_.n) {
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return mean(a) > mean(b); });
      }
      result.insert(result.end(), order.begin(), order.begin() + options_.n);
    }
    return result;
  }

  Call call_;
  CompletionOptions options_;
  std::vector<Choice> choices_;
};

CompletionOptions read_options(const Fields& body, const ServedModel& model,
                               GenerationRequest& generation) {
  if (body.find("suffix") != nullptr) body.fail("suffix", "nothing: this server does not insert");
  CompletionOptions options;
  options.stream = body.boolean("stream", false);
  options.echo = body.boolean("echo", false);
  if (const OrderedJson* stream = body.object("stream_options")) {
    options.include_usage = Fields(*stream, "stream_options").boolean("include_usage", false);
  }
  options.n = generation.n;
  options.best_of = int(body.integer("best_of", options.n, kMaxChoices).value_or(options.n));
  if (options.stream && options.best_of != options.n) {
    body.fail("best_of", "n, because the answer is streamed");
  }
  const auto logprobs = body.integer("logprobs", 0, kMaxTopLogprobs);
  options.scored = logprobs.has_value();
  options.n_top = int(logprobs.value_or(0));
  options.prompts = read_prompts(body, "prompt", kMaxPrompts, model);
  if (options.prompts.size() * size_t(options.best_of) > kMaxChoices) {
    body.fail("prompt", fmt::format("at most {} choices in all", kMaxChoices));
  }
  generation.n = options.best_of;
  generation.prompts = options.prompts;
  generation.continues = true;
  // Choices are compared by their scores.
  if (options.scored || options.best_of > options.n) {
    generation.request.sampling.n_top_logprobs = int(logprobs.value_or(0));
  }
  if (options.scored && options.echo) generation.request.score_from = 0;
  if (!options.echo) return options;
  for (const auto& prompt : options.prompts) {
    options.texts.push_back(prompt_text(*model.tokenizer, prompt));
  }
  return options;
}

}  // namespace

void text_completion(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  GenerationRequest request = read_generation(body, *call.model);
  request.account = call.account;
  read_service_tier(body, request.request);
  CompletionOptions options = read_options(body, *call.model, request);
  const int64_t wanted = body.integer("max_tokens", 0, INT32_MAX).value_or(kUsualTokens);
  if (wanted == 0 && !options.echo) body.fail("max_tokens", "at least 1 without echo");
  size_t longest = 0;
  for (const auto& prompt : request.prompts) longest = std::max(longest, prompt.size());
  request.request.max_tokens = answer_limit(*call.model, longest, wanted, "prompt");
  if (options.stream) {
    call.exchange->start_stream();
    call.exchange->on_silence([exchange = call.exchange.get()] { exchange->send(": wait\n\n"); });
  }
  const auto sink = std::make_shared<Completion>(call, std::move(options));
  const auto generation = start_generation(
      *call.model, std::move(request),
      {[sink](Piece piece) {
         sink->piece(std::move(piece));
         return true;
       },
       [sink](const GenerationError& error, const Usage& usage) { sink->done(error, usage); }});
  cancel_with_client(call, generation);
}

}  // namespace sluice
