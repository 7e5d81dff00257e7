#include "serve/metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace sluice {
namespace {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void head(const std::string& name, const std::string& type, const std::string& help) {
    fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   type);
  }
  template <typename T>
  void value(const std::string& name, T value) {
    fmt::format_to(std::back_inserter(out_), "{} {}\n", name, value);
  }
  void counter(const std::string& name, const std::string& help, uint64_t count) {
    head(name, "counter", help);
    value(name, count);
  }
  void gauge(const std::string& name, const std::string& help, int64_t now) {
    head(name, "gauge", help);
    value(name, now);
  }

 private:
  std::string& out_;
};

void write_drafts(Writer& writer, const EngineStats& stats) {
  const std::pair<const char*, const std::vector<uint64_t>*> families[] = {
      {"sluice_drafted_tokens_total", &stats.drafted},
      {"sluice_accepted_tokens_total", &stats.accepted}};
  for (const auto& [name, counts] : families) {
    writer.head(name, "counter", "Guessed tokens by place in the guess, from 0.");
    for (size_t i = 0; i < counts->size(); ++i) {
      writer.value(fmt::format("{}{{place=\"{}\"}}", name, i), (*counts)[i]);
    }
  }
}

void write_stages(Writer& writer, const EngineStats& stats) {
  const std::string name = "sluice_stage_seconds_total";
  writer.head(name, "counter", "Where the time of a stage went.");
  for (size_t s = 0; s < stats.stages.size(); ++s) {
    const StageTiming& stage = stats.stages[s];
    const std::pair<const char*, double> parts[] = {{"compute", stage.compute_us},
                                                    {"sync", stage.sync_us},
                                                    {"wire", stage.wire_us},
                                                    {"idle", stage.idle_us}};
    for (const auto& [part, us] : parts) {
      writer.value(fmt::format("{}{{stage=\"{}\",part=\"{}\"}}", name, s, part), us / 1e6);
    }
  }
}

}  // namespace

void Histogram::add(double seconds) {
  size_t i = 0;
  while (i < kBounds.size() && seconds > kBounds[i]) ++i;
  ++counts_[i];
  sum_ += seconds;
}

void Histogram::write(std::string& out, const std::string& name, const std::string& help) const {
  Writer writer(out);
  writer.head(name, "histogram", help);
  uint64_t total = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    total += counts_[i];
    writer.value(fmt::format("{}_bucket{{le=\"{}\"}}", name, kBounds[i]), total);
  }
  total += counts_.back();
  writer.value(name + "_bucket{le=\"+Inf\"}", total);
  writer.value(name + "_sum", sum_);
  writer.value(name + "_count", total);
}

std::string metrics_text(const Metrics& metrics, const EngineStats& stats, int n_open) {
  std::string out;
  Writer writer(out);
  writer.gauge("sluice_requests_open", "API requests admitted and not yet answered.", n_open);
  writer.gauge("sluice_sequences_running", "Sequences being served.", stats.n_running);
  writer.gauge("sluice_sequences_waiting", "Sequences in the queue.", stats.n_waiting);
  writer.gauge("sluice_cache_pages", "Pages of the cache.", stats.n_pages);
  writer.gauge("sluice_cache_pages_free", "Pages nobody uses.", stats.n_free_pages);
  writer.gauge("sluice_cache_pages_prefix", "Pages of remembered prefixes.", stats.n_cached_pages);
  writer.counter("sluice_prompt_tokens_total", "Prompt tokens computed.", stats.prompt_tokens);
  writer.counter("sluice_cached_tokens_total", "Prompt tokens taken from the prefix cache.",
                 stats.cached_tokens);
  writer.counter("sluice_generated_tokens_total", "Tokens generated.", stats.generated_tokens);
  writer.counter("sluice_sequences_finished_total", "Sequences that ended.", stats.finished);
  writer.counter("sluice_sequences_cancelled_total", "Sequences cancelled.", stats.cancelled);
  writer.counter("sluice_sequences_failed_total", "Sequences that failed.", stats.failed);
  writer.counter("sluice_preemptions_total", "Sequences set back for want of pages.",
                 stats.preemptions);
  writer.counter("sluice_batches_total", "Batches computed.", stats.batches);
  writer.counter("sluice_rows_total", "Rows of batches computed.", stats.rows);
  write_drafts(writer, stats);
  write_stages(writer, stats);
  metrics.first_token_s.write(out, "sluice_time_to_first_token_seconds",
                              "From the start of a request to a choice's first token.");
  metrics.inter_token_s.write(out, "sluice_inter_token_seconds", "Between two tokens of a choice.");
  return out;
}

}  // namespace sluice
