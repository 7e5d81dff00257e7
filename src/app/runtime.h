// A model that is open, and then running: what every command works with.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/model_bytes.h"
#include "app/options.h"
#include "base/json.h"
#include "engine/engine.h"
#include "pipeline/pipeline.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace sluice {

/// The path that --model stands for. Throws kNotFound with what to do if there is no default model.
std::filesystem::path model_path(const std::string& option);

/// In a folder made by `sluice pack` from a GGUF file: its metadata on the tokenizer.
inline constexpr const char* kPackedTokenizer = "tokenizer.gguf";

/// Whether the checkpoint comes with a tokenizer.
bool has_tokenizer(const Checkpoint& checkpoint);
std::unique_ptr<Tokenizer> open_tokenizer(const Checkpoint& checkpoint);
/// The source of the checkpoint's chat template; empty if it has none.
std::string chat_template_source(const Checkpoint& checkpoint);
/// bos_token, eos_token: what templates expect to find.
OrderedJson template_variables(const Tokenizer& tokenizer);

/// A message on standard error: "sluice: note: ...".
void print_notice(const std::string& text);

class Runtime {
 public:
  /// Opens the model and decides the plan; loads no weights yet.
  explicit Runtime(const ModelOptions& options);
  ~Runtime();

  const ModelOptions& options() const { return options_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const Model& model() const { return *model_; }
  const Plan& plan() const { return plan_; }
  const ModelBytes& bytes() const { return bytes_; }
  int n_threads() const { return n_threads_; }
  /// The CPU of each thread, or empty: fewer threads than CPUs are left to the system, which knows
  /// the CPUs that are free.
  std::vector<int> cores() const;
  int n_layers() const;

  /// Opened on first use. Throws if the model has none.
  const Tokenizer& tokenizer();
  /// nullptr if the model has none or, with a notice, if it cannot be used.
  const Tokenizer* optional_tokenizer();
  /// nullptr if the model has none. Throws if it is wrong.
  const ChatTemplate* chat_template();
  /// The conversation as tokens, ending where the answer starts.
  std::vector<Token> chat_tokens(const OrderedJson& messages);
  /// The ids that end an answer, by tokenizer and config.
  std::vector<Token> end_tokens();

  /// Loads the weights. The cache holds at least `n_tokens` tokens of `n_users` users; less than
  /// the smaller of the model's context and 8192 is never reserved. `engine` options that the flags
  /// decide are filled in.
  void start(int64_t n_tokens, int n_users, EngineOptions engine = {});
  Engine& engine() { return *engine_; }
  const Pipeline& pipeline() const { return *pipeline_; }
  double load_ms() const { return load_ms_; }

  /// One step of the engine; false if there is nothing to do.
  bool step();

 private:
  Plan make_plan() const;
  CachePools make_pools(int64_t n_tokens, int n_users, const EngineOptions& engine) const;

  ModelOptions options_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Model> loadable_;  // until start()
  Model* model_ = nullptr;
  ModelBytes bytes_;
  int n_threads_ = 1;
  Plan plan_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  bool looked_for_template_ = false;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
  double load_ms_ = 0;
};

/// Microseconds on a clock that never goes back.
double now_us();

/// Ctrl-C no longer ends the process but makes interrupted() true, until cleared; pressed twice
/// without being cleared, it ends the process with kInterrupted.
void catch_interrupts();
bool interrupted();
void clear_interrupt();
/// Readable from an interrupt until clear_interrupt().
int interrupt_fd();

}  // namespace sluice
