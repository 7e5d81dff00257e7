// One API request on the engine: its choices as streams of text.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "serve/engine_thread.h"
#include "serve/metrics.h"
#include "text/tokenizer.h"

namespace sluice {

/// A token of an answer and how likely it was.
struct ScoredToken {
  Token token = -1;
  float logprob = 0;
  std::vector<TokenScore> top;
  size_t offset = 0;  // bytes of text before it in the answer
};

/// The next part of a choice.
struct Piece {
  int choice = 0;
  std::string text;                 // whole code points, nothing that belongs to a stop text
  std::vector<ScoredToken> scores;  // of the tokens of `text`, if asked for
  FinishReason finish = FinishReason::kNone;
  std::string stop;                    // the stop text that ended the choice, if one did
  std::vector<float> prompt_logprobs;  // with the first piece, if asked for
  int n_tokens = 0;                    // that were sampled since the choice's last piece
};

struct Usage {
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

struct GenerationRequest {
  std::vector<std::vector<Token>> prompts;
  bool continues = false;  // the text goes on where that of the prompt ends
  int n = 1;               // choices per prompt; choice i of prompt p has the number p * n + i
  /// Of every choice, but for prompt and sink; choice i of a prompt has the seed `sampling.seed` +
  /// i.
  Request request;
  std::vector<std::string> stop;
  /// Told once what was used, however the generation ends; from any thread.
  std::function<void(const Usage&)> account;
  /// Special tokens that are part of the text, ascending; no others are.
  std::vector<Token> visible;
  /// Called once per choice, on the engine's thread; empty: nothing restricts the tokens.
  std::function<std::shared_ptr<TokenConstraint>()> constrain;
};

/// Why a generation ended before its time; no message: it did not.
struct GenerationError {
  enum class Cause {
    kServer,    // or the model
    kRequest,   // what was asked for cannot be done
    kShutdown,  // the server ends; elsewhere, or later, it may go well
  };
  std::string message;
  Cause cause = Cause::kServer;
  bool empty() const { return message.empty(); }
};

/// Of a request's last event; empty unless it tells of an error.
GenerationError error_of(const TokenEvent& event);

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Sinks {
    /// In order within a choice; false ends the choice, without another piece.
    std::function<bool(Piece)> piece;
    /// After the last piece of the last choice; `error` is empty if all went well. Never called
    /// after cancel().
    std::function<void(const GenerationError& error, const Usage& usage)> done;
  };

  /// The sinks are called on the engine's thread. Everything given by reference lives on.
  static std::shared_ptr<Generation> start(EngineThread& thread, const Tokenizer& tokenizer,
                                           Metrics& metrics, GenerationRequest request,
                                           Sinks sinks);
  ~Generation();

  /// Ends all choices within a step; from any thread.
  void cancel();

 private:
  struct Choice;

  Generation(EngineThread& thread, const Tokenizer& tokenizer, Metrics& metrics,
             GenerationRequest request, Sinks sinks);
  void submit(Engine& engine, int choice);
  bool take(Engine& engine, Choice& choice, const TokenEvent& event);
  void add_token(Choice& choice, const TokenEvent& event, Piece& piece);
  void measure(Choice& choice);
  void settle();
  void end(Choice& choice, const TokenEvent& event, Piece& piece);

  EngineThread& thread_;
  const Tokenizer& tokenizer_;
  Metrics& metrics_;
  GenerationRequest request_;
  Sinks sinks_;
  std::vector<std::unique_ptr<Choice>> choices_;
  Usage usage_;
  int n_open_ = 0;
  double start_us_;
  GenerationError error_;
  std::shared_ptr<bool> constraint_failed_ = std::make_shared<bool>(false);
  std::atomic<bool> cancelled_ = false;
};

}  // namespace sluice
