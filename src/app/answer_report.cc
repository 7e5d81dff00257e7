// An answer's numbers as JSON and as a table.
#include <fmt/format.h>

#include "app/answer.h"
#include "app/report.h"

namespace sluice {
namespace {

Json scores_to_json(const std::vector<AnswerScore>& scores) {
  Json list = Json::array();
  for (const AnswerScore& score : scores) {
    Json top = Json::array();
    for (const TokenScore& t : score.top)
      top.push_back({{"token", t.token}, {"logprob", t.logprob}});
    list.push_back({{"token", score.token}, {"logprob", score.logprob}, {"top", std::move(top)}});
  }
  return list;
}

Json stages_to_json(const Plan& plan, const Phase& prefill, const Phase& decode, double n_tokens) {
  Json stages = Json::array();
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const auto timing = [&](const Phase& phase) {
      return s < phase.stages.size() ? phase.stages[s] : StageTiming{};
    };
    stages.push_back({{"name", plan.stages[s].name},
                      {"prefill_ms", timing_to_json(timing(prefill), 1)},
                      {"decode_ms_per_token", timing_to_json(timing(decode), n_tokens)}});
  }
  return stages;
}

std::string blocks_text(const StagePlan& stage) {
  std::string text;
  for (const auto& [first, last] : stage.blocks) {
    if (text.size() > 5) return text + ",...";
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", first, last - 1);
  }
  return text.empty() ? "head" : text + (stage.head ? ",head" : "");
}

std::string rate_line(const char* what, int n, double ms, double tok_s, const std::string& note) {
  return fmt::format("{:<10}{:>7} tokens {:>9} ms {:>9} tokens/s{}\n", what, n, short_number(ms),
                     short_number(tok_s), note);
}

}  // namespace

Json answer_to_json(const Runtime& runtime, const Answer& a) {
  const double n_decoded = a.tokens.size() > 1 ? double(a.tokens.size() - 1) : 0;
  const int n_layers = runtime.n_layers();
  Json timings = {
      {"load_ms", rounded(runtime.load_ms())},
      {"ttft_ms", rounded(a.prefill.ms)},
      {"prefill_ms", rounded(a.prefill.ms)},
      {"decode_ms", rounded(a.decode.ms)},
      {"prefill_tok_s", rounded(a.prefill_tok_s())},
      {"decode_tok_s", rounded(a.decode_tok_s())},
      {"tok_s", rounded(a.decode_tok_s())},
      {"ms_per_token", timing_to_json(a.decode.total(), n_decoded)},
      {"stages", stages_to_json(runtime.plan(), a.prefill, a.decode, n_decoded)},
      {"joins_per_layer", rounded(a.decode.joins_per_layer(n_layers))},
  };
  Json json = {
      {"tokens", a.tokens},
      {"text", a.text},
      {"prompt_tokens", a.n_prompt},
      {"cached_tokens", a.n_cached},
      {"finish_reason", finish_name(a.finish)},
      {"timings", std::move(timings)},
      {"speculation", {{"drafted", a.decode.drafted}, {"accepted", a.decode.accepted}}},
      {"memory",
       {{"weight_bytes", runtime.pipeline().weight_bytes()},
        {"cache_bytes", runtime.pipeline().cache_bytes()},
        {"peak_resident_bytes", peak_resident_bytes()}}},
  };
  if (!a.scores.empty()) json["logprobs"] = scores_to_json(a.scores);
  return json;
}

std::string answer_table(const Runtime& runtime, const Answer& a) {
  const int n_generated = int(a.tokens.size());
  const double n_decoded = std::max(1, n_generated - 1);
  std::string out = rate_line("prompt", a.n_prompt, a.prefill.ms, a.prefill_tok_s(),
                              a.n_cached > 0 ? fmt::format(", {} from the cache", a.n_cached) : "");
  out += rate_line("generated", n_generated, a.decode.ms, a.decode_tok_s(),
                   fmt::format(", {}", finish_name(a.finish)));
  out += fmt::format("\n{:<24}{:>14}{:>14}{:>14}{:>14}\n", "ms per token", "compute", "sync",
                     "wire", "idle");
  const Plan& plan = runtime.plan();
  for (size_t s = 0; s < plan.stages.size() && s < a.decode.stages.size(); ++s) {
    const StageTiming& t = a.decode.stages[s];
    const double unit = 1e3 * n_decoded;
    out +=
        fmt::format("{:<24}{:>14.3f}{:>14.3f}{:>14.3f}{:>14.3f}\n",
                    fmt::format("  {:.9} ({})", plan.stages[s].name, blocks_text(plan.stages[s])),
                    t.compute_us / unit, t.sync_us / unit, t.wire_us / unit, t.idle_us / unit);
  }
  out += fmt::format("\nloaded in {} ms    joins per layer {}", short_number(runtime.load_ms()),
                     short_number(a.decode.joins_per_layer(runtime.n_layers())));
  if (a.decode.drafted > 0) {
    out += fmt::format("    guesses right {} of {}", a.decode.accepted, a.decode.drafted);
  }
  out += fmt::format("\nmemory: weights {}, cache {}, peak resident {}\n",
                     bytes_text(double(runtime.pipeline().weight_bytes())),
                     bytes_text(double(runtime.pipeline().cache_bytes())),
                     bytes_text(double(peak_resident_bytes())));
  return out;
}

}  // namespace sluice
