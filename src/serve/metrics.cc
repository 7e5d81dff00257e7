#include "serve/metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace sluice {
namespace {

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// Families of metrics, each with a series per model.
class Writer {
 public:
  explicit Writer(const std::vector<ModelMetrics>& models) : models_(models) {
    for (const ModelMetrics& model : models) {
      labels_.push_back(fmt::format("model=\"{}\"", escape(model.model)));
    }
  }

  std::string take() { return std::move(out_); }

  void head(const std::string& name, const std::string& type, const std::string& help) {
    fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   type);
  }
  template <typename T>
  void value(const std::string& name, const std::string& labels, T value) {
    fmt::format_to(std::back_inserter(out_), "{}{{{}}} {}\n", name, labels, value);
  }
  void total(const std::string& name, const std::string& help, int64_t now) {
    head(name, "gauge", help);
    fmt::format_to(std::back_inserter(out_), "{} {}\n", name, now);
  }

  template <typename T>
  void counter(const std::string& name, const std::string& help, T EngineStats::*field) {
    head(name, "counter", help);
    each([&](const ModelMetrics& m, const std::string& labels) {
      value(name, labels, m.stats.*field);
    });
  }
  template <typename T>
  void gauge(const std::string& name, const std::string& help, T EngineStats::*field) {
    head(name, "gauge", help);
    each([&](const ModelMetrics& m, const std::string& labels) {
      value(name, labels, m.stats.*field);
    });
  }
  void histogram(const std::string& name, const std::string& help, Histogram Metrics::*field) {
    head(name, "histogram", help);
    each([&](const ModelMetrics& m, const std::string& labels) {
      (m.metrics.*field).write(out_, name, labels);
    });
  }
  /// Calls back with each model and its labels.
  template <typename F>
  void each(const F& with) {
    for (size_t i = 0; i < models_.size(); ++i) with(models_[i], labels_[i]);
  }

 private:
  const std::vector<ModelMetrics>& models_;
  std::vector<std::string> labels_;
  std::string out_;
};

void write_drafts(Writer& writer) {
  const std::pair<const char*, std::vector<uint64_t> EngineStats::*> families[] = {
      {"sluice_drafted_tokens_total", &EngineStats::drafted},
      {"sluice_accepted_tokens_total", &EngineStats::accepted}};
  for (const auto& [name, field] : families) {
    writer.head(name, "counter", "Guessed tokens by place in the guess, from 0.");
    writer.each([&, name = name, field = field](const ModelMetrics& m, const std::string& labels) {
      const std::vector<uint64_t>& counts = m.stats.*field;
      for (size_t i = 0; i < counts.size(); ++i) {
        writer.value(name, fmt::format("{},place=\"{}\"", labels, i), counts[i]);
      }
    });
  }
}

void write_responses(Writer& writer, const ServerMetrics& server) {
  const std::string name = "sluice_http_responses_total";
  writer.head(name, "counter", "HTTP responses by status.");
  for (const auto& [status, n] : server.n_responses) {
    writer.value(name, fmt::format("status=\"{}\"", status), n);
  }
}

void write_busy_shares(Writer& writer) {
  const std::string name = "sluice_stage_busy_ratio";
  writer.head(name, "gauge", "Share of a stage's time, since the start, in which it computed.");
  writer.each([&](const ModelMetrics& m, const std::string& labels) {
    for (size_t s = 0; s < m.stats.stages.size(); ++s) {
      const StageTiming& stage = m.stats.stages[s];
      const double busy = stage.compute_us + stage.sync_us;
      const double all = busy + stage.wire_us + stage.idle_us;
      writer.value(name, fmt::format("{},stage=\"{}\"", labels, s), all > 0 ? busy / all : 0);
    }
  });
}

void write_stages(Writer& writer) {
  const std::string name = "sluice_stage_seconds_total";
  writer.head(name, "counter", "Where the time of a stage went.");
  writer.each([&](const ModelMetrics& m, const std::string& labels) {
    for (size_t s = 0; s < m.stats.stages.size(); ++s) {
      const StageTiming& stage = m.stats.stages[s];
      const std::pair<const char*, double> parts[] = {{"compute", stage.compute_us},
                                                      {"sync", stage.sync_us},
                                                      {"wire", stage.wire_us},
                                                      {"idle", stage.idle_us}};
      for (const auto& [part, us] : parts) {
        writer.value(name, fmt::format("{},stage=\"{}\",part=\"{}\"", labels, s, part), us / 1e6);
      }
    }
  });
}

}  // namespace

void Histogram::add(double seconds) {
  size_t i = 0;
  while (i < kBounds.size() && seconds > kBounds[i]) ++i;
  ++counts_[i];
  sum_ += seconds;
}

void Histogram::write(std::string& out, const std::string& name, const std::string& labels) const {
  const auto line = [&](const char* suffix, const std::string& all_labels, auto value) {
    fmt::format_to(std::back_inserter(out), "{}{}{{{}}} {}\n", name, suffix, all_labels, value);
  };
  uint64_t total = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    total += counts_[i];
    line("_bucket", fmt::format("{},le=\"{}\"", labels, kBounds[i]), total);
  }
  total += counts_.back();
  line("_bucket", labels + ",le=\"+Inf\"", total);
  line("_sum", labels, sum_);
  line("_count", labels, total);
}

std::string metrics_text(const std::vector<ModelMetrics>& models, const ServerMetrics& server) {
  using Stats = EngineStats;
  Writer writer(models);
  writer.total("sluice_requests_open", "API requests admitted and not yet answered.",
               server.n_open);
  write_responses(writer, server);
  writer.gauge("sluice_sequences_running", "Sequences being served.", &Stats::n_running);
  writer.gauge("sluice_sequences_waiting", "Sequences in the queue.", &Stats::n_waiting);
  writer.gauge("sluice_cache_pages", "Pages of the cache.", &Stats::n_pages);
  writer.gauge("sluice_cache_pages_free", "Pages nobody uses.", &Stats::n_free_pages);
  writer.gauge("sluice_cache_pages_prefix", "Pages of remembered prefixes.",
               &Stats::n_cached_pages);
  writer.counter("sluice_prompt_tokens_total", "Prompt tokens computed.", &Stats::prompt_tokens);
  writer.counter("sluice_cached_tokens_total", "Prompt tokens taken from the prefix cache.",
                 &Stats::cached_tokens);
  writer.counter("sluice_generated_tokens_total", "Tokens generated.", &Stats::generated_tokens);
  writer.counter("sluice_sequences_finished_total", "Sequences that ended.", &Stats::finished);
  writer.counter("sluice_sequences_cancelled_total", "Sequences cancelled.", &Stats::cancelled);
  writer.counter("sluice_sequences_failed_total", "Sequences that failed.", &Stats::failed);
  writer.counter("sluice_preemptions_total", "Sequences set back for want of pages.",
                 &Stats::preemptions);
  writer.counter("sluice_batches_total", "Batches computed.", &Stats::batches);
  writer.counter("sluice_rows_total", "Rows of batches computed.", &Stats::rows);
  write_drafts(writer);
  write_stages(writer);
  write_busy_shares(writer);
  writer.histogram("sluice_queue_wait_seconds",
                   "From the start of a request to the first step that serves it.",
                   &Metrics::queue_s);
  writer.histogram("sluice_time_to_first_token_seconds",
                   "From the start of a request to a choice's first token.",
                   &Metrics::first_token_s);
  writer.histogram("sluice_inter_token_seconds", "Between two tokens of a choice.",
                   &Metrics::inter_token_s);
  return writer.take();
}

}  // namespace sluice
