#include "app/commands.h"

#include "app/cli.h"
#include "app/usage.h"

namespace sluice {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"run", "answer one prompt", run_command},
      {"chat", "talk with a model", chat_command},
      {"serve", "answer OpenAI's API over HTTP", serve_command},
      {"usage", "sum what the requests of a server have used and cost", usage_command},
      {"bench", "measure speed: prefill, decode, users, depth", bench_command},
      {"inspect", "show what is in a model file", inspect_command},
      {"logits", "write the logits of every prompt position", logits_command},
      {"perplexity", "score a text", perplexity_command},
      {"pack", "write a model in the layout of the kernels, for quick starts", pack_command},
      {"tokenize", "text to token ids", tokenize_command},
      {"detokenize", "token ids to text", detokenize_command},
      {"template", "render a conversation with a chat template", template_command},
      {"memory", "count the bytes a model needs, before there is hardware", memory_command},
      {"plan", "find what could run a model, how fast and at what price", plan_command},
      {"phase", "draw where which machine is enough: context x model size", phase_command},
      {"claims", "check what is said about a machine", claims_command},
      {"validate", "compare the planner with what was measured", validate_command},
      {"simulate", "serve a load on modelled stages with the real scheduler", simulate_command},
      {"calibrate", "measure this machine for the simulator", calibrate_command},
      {"compare", "run a plan and simulate it, side by side", compare_command},
  };
  return kCommands;
}

}  // namespace sluice
