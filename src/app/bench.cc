// sluice bench: how fast prefill and decode are, and where the time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>

#include "app/answer.h"
#include "app/bandwidth.h"
#include "app/commands.h"
#include "app/report.h"
#include "base/error.h"

namespace sluice {
namespace {

struct BenchOptions {
  BenchOptions() { model.speculate = "off"; }

  ModelOptions model;
  int prompt_tokens = 512, new_tokens = 128, depth = 0, repeat = 5;
  std::string users = "1", text_file;
  bool json = false;

  int64_t tokens_per_user() const { return int64_t(depth) + prompt_tokens + new_tokens + 1; }
};

/// One repeat of one row.
struct Sample {
  double prefill_tok_s = 0, decode_tok_s = 0;
  int64_t n_decoded = 0;  // tokens of the decode phase
  Phase decode;
};

struct Row {
  int users = 0;
  std::vector<double> prefill_tok_s, decode_tok_s;
  Sample median;  // the sample with the median decode rate
  double joins_per_layer = 0;
  double read_bytes_per_token = 0, read_gb_s = 0, roof_gb_s = 0;
};

bool parse(BenchOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "bench", "[flags]",
           "Measures tokens per second for one or several users at once: prefill of "
           "--prompt-tokens, then decode of --new-tokens each, behind --depth tokens that are in "
           "the cache already. Reports medians and extremes, milliseconds per token in kernels "
           "(compute), joining threads (sync), moving frames (wire) and waiting (idle), and the "
           "bytes read per second as a fraction of what memory gives to a plain reading loop over "
           "as many bytes in the same run. Speculation is off unless asked for.",
           {"sluice bench", "sluice bench --users 1,2,4,8 --prompt-tokens 64",
            "sluice bench --depth 2048 --new-tokens 64 --json",
            "sluice bench --text-file code.txt --speculate ngram"});
  add_integer(app, "--prompt-tokens", o.prompt_tokens, 1, 1 << 24, "per user (default 512)")
      ->group("Work");
  add_integer(app, "--new-tokens", o.new_tokens, 0, 1 << 24,
              "per user after the first one (default 128)")
      ->group("Work");
  add_text(app, "--users", "N,N,...", o.users, "users at once; a row for each number (default 1)")
      ->group("Work");
  add_integer(app, "--depth", o.depth, 0, 1 << 24, "tokens before the prompt, not timed")
      ->group("Work");
  add_integer(app, "--repeat", o.repeat, 1, 1000, "measurements per row (default 5)")
      ->group("Work");
  add_text(app, "--text-file", "FILE", o.text_file, "take the prompts from a text (else random)")
      ->group("Work");
  add_model_flags(app, o.model);
  add_switch(app, "--json", o.json, "print one object with a list of rows")->group("Output");
  return parse_flags(app, argc, argv);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

class Bench {
 public:
  Bench(Runtime& runtime, const BenchOptions& options, double roof_gb_s)
      : runtime_(runtime), options_(options), roof_gb_s_(roof_gb_s) {
    if (options.text_file.empty()) return;
    text_ = runtime.tokenizer().encode(read_text(options.text_file));
  }

  /// Touches code and memory once.
  void warm_up() { sample(1, -1); }

  Row measure(int users, Progress& progress) {
    Row row;
    row.users = users;
    row.roof_gb_s = roof_gb_s_;
    std::vector<Sample> samples;
    for (int r = 0; r < options_.repeat && !interrupted(); ++r) {
      samples.push_back(sample(users, r));
      row.prefill_tok_s.push_back(samples.back().prefill_tok_s);
      row.decode_tok_s.push_back(samples.back().decode_tok_s);
      progress.update(double(r + 1) / options_.repeat, fmt::format("{} users", users));
    }
    const double median = median_of(row.decode_tok_s);
    for (const Sample& s : samples) {
      if (s.decode_tok_s == median) row.median = s;
    }
    if (row.median.n_decoded > 0) add_bandwidth(row);
    return row;
  }

 private:
  /// Positions [0, n) of a user's prompt; the part after `depth` differs from repeat to repeat.
  std::vector<Token> prompt(int user, int repeat, int n) const {
    std::vector<Token> tokens;
    if (!text_.empty()) {
      const size_t first = size_t(user) * 37;  // users do not share a beginning
      if (first + size_t(n) > text_.size()) {
        throw Error(ErrorCode::kInvalidInput, "{}: expected at least {} tokens, got {}",
                    options_.text_file, first + size_t(n), text_.size());
      }
      tokens.assign(text_.begin() + std::ptrdiff_t(first),
                    text_.begin() + std::ptrdiff_t(first) + n);
      return tokens;
    }
    std::mt19937 depth_random(unsigned(user) + 1);
    std::mt19937 random(unsigned(user) * 7919u + unsigned(repeat + 2) * 104729u);
    for (int i = 0; i < n; ++i) {
      const uint64_t draw = i < options_.depth ? depth_random() : random();
      tokens.push_back(Token(draw % uint64_t(runtime_.model().vocab)));
    }
    return tokens;
  }

  Request request(int user, int repeat, int n, int max_tokens) {
    Request request;
    request.prompt = prompt(user, repeat, n);
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.ignore_end = true;
    return request;
  }

  /// Runs the engine dry. `progressed` is called after each step.
  void run(const std::function<void()>& progressed = {}) {
    while (!interrupted() && runtime_.step()) {
      if (progressed) progressed();
    }
    if (!error_.empty()) throw Error(ErrorCode::kInvalidInput, "{}", error_);
  }

  /// Computes the first `n` positions of every user; returns how many were not in the cache.
  int64_t prefill(int users, int repeat, int n) {
    int64_t n_computed = 0;
    for (int u = 0; u < users; ++u) {
      Request r = request(u, repeat, n, 0);
      r.sink = [&, n](const TokenEvent& event) {
        n_computed += n - event.n_cached;
        error_ = event.error;
        return true;
      };
      runtime_.engine().submit(std::move(r));
    }
    run();
    return n_computed;
  }

  Sample sample(int users, int repeat) {
    if (!text_.empty()) runtime_.engine().forget_prefixes();
    if (options_.depth > 0) prefill(users, repeat, options_.depth);
    Sample sample;
    PhaseClock clock(runtime_.engine());
    const int64_t n_computed = prefill(users, repeat, options_.depth + options_.prompt_tokens);
    sample.prefill_tok_s = double(n_computed) / clock.lap().ms * 1e3;
    if (options_.new_tokens > 0) decode(users, repeat, sample);
    return sample;
  }

  /// Counts from when all users have their first token until the first one has its last.
  void decode(int users, int repeat, Sample& sample) {
    std::vector<int> n_tokens(size_t(users), 0);
    int n_started = 0;
    int64_t n_total = 0;
    bool finished = false;
    for (int u = 0; u < users; ++u) {
      Request r =
          request(u, repeat, options_.depth + options_.prompt_tokens, options_.new_tokens + 1);
      r.sink = [&, u](const TokenEvent& event) {
        error_ = event.error;
        if (event.token >= 0 && n_tokens[size_t(u)]++ == 0) ++n_started;
        n_total += event.token >= 0;
        finished = finished || event.finish != FinishReason::kNone;
        return true;
      };
      runtime_.engine().submit(std::move(r));
    }
    std::optional<PhaseClock> clock;
    int64_t n_before = 0;
    run([&] {
      if (!clock && n_started == users) {
        clock.emplace(runtime_.engine());
        n_before = n_total;
      } else if (clock && finished && sample.n_decoded == 0) {
        sample.n_decoded = n_total - n_before;
        sample.decode = clock->lap();
        sample.decode_tok_s = double(sample.n_decoded) / sample.decode.ms * 1e3;
      }
    });
  }

  void add_bandwidth(Row& row) const {
    const Sample& s = row.median;
    const double n_batches = double(std::max<uint64_t>(1, s.decode.batches));
    const int rows = int(std::max(1.0, double(s.n_decoded) / n_batches + 0.5));
    const int64_t depth = options_.depth + options_.prompt_tokens + options_.new_tokens / 2;
    const double cache = cache_read_bytes(runtime_.model(), depth, runtime_.options().cache_f16());
    const double total = n_batches * runtime_.bytes().read_by(rows) + double(s.n_decoded) * cache;
    row.read_bytes_per_token = total / double(s.n_decoded);
    row.read_gb_s = total / (s.decode.ms / 1e3) / 1e9;
    row.joins_per_layer = s.decode.joins_per_layer(runtime_.n_layers());
  }

  Runtime& runtime_;
  const BenchOptions& options_;
  double roof_gb_s_;
  std::vector<Token> text_;
  std::string error_;
};

Json rates_to_json(const std::vector<double>& rates) {
  const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
  return {{"median", rounded(median_of(rates))}, {"min", rounded(*low)}, {"max", rounded(*high)}};
}

Json row_to_json(const Row& row, const BenchOptions& o) {
  const double roof = row.roof_gb_s;
  return {{"users", row.users},
          {"prompt_tokens", o.prompt_tokens},
          {"depth", o.depth},
          {"new_tokens", o.new_tokens},
          {"repeat", row.decode_tok_s.size()},
          {"prefill_tok_s", rounded(median_of(row.prefill_tok_s))},
          {"decode_tok_s", rounded(median_of(row.decode_tok_s))},
          {"prefill", rates_to_json(row.prefill_tok_s)},
          {"decode", rates_to_json(row.decode_tok_s)},
          {"ms_per_token", timing_to_json(row.median.decode.total(), double(row.median.n_decoded))},
          {"joins_per_layer", rounded(row.joins_per_layer)},
          {"drafted", row.median.decode.drafted},
          {"accepted", row.median.decode.accepted},
          {"read_bytes_per_token", int64_t(row.read_bytes_per_token)},
          {"read_gb_s", rounded(row.read_gb_s)},
          {"bandwidth_gb_s", rounded(roof)},
          {"bandwidth_fraction", rounded(roof > 0 ? row.read_gb_s / roof : 0)}};
}

std::string rates_text(const std::vector<double>& rates) {
  const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
  return fmt::format("{} [{}-{}]", short_number(median_of(rates)), short_number(*low),
                     short_number(*high));
}

void print_row(const Row& row) {
  fmt::print("{:>5}{:>24}{:>24}{:>10}{:>9.0f} %{:>6}\n", row.users, rates_text(row.prefill_tok_s),
             rates_text(row.decode_tok_s), short_number(row.read_gb_s),
             row.roof_gb_s > 0 ? 100 * row.read_gb_s / row.roof_gb_s : 0,
             short_number(row.joins_per_layer));
  const Json ms = timing_to_json(row.median.decode.total(), double(row.median.n_decoded));
  fmt::print("      ms per token: compute {:.3f}, sync {:.3f}, wire {:.3f}, idle {:.3f}\n",
             ms["compute"].get<double>(), ms["sync"].get<double>(), ms["wire"].get<double>(),
             ms["idle"].get<double>());
  if (row.median.decode.drafted > 0) {
    fmt::print("      guesses right: {} of {}\n", row.median.decode.accepted,
               row.median.decode.drafted);
  }
}

/// Reads as many bytes as a token does, so that caches help both alike.
double measure_roof(const Runtime& runtime) {
  constexpr double kLeast = 1 << 20, kMost = 256 << 20;
  ThreadPool pool(runtime.n_threads(), runtime.cores());
  return measure_read_gb_s(pool, int64_t(std::clamp(runtime.bytes().read_by(1), kLeast, kMost)));
}

}  // namespace

int bench_command(int argc, char** argv) {
  BenchOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const std::vector<int32_t> users = parse_integers(o.users, "--users");
  const int max_users = *std::max_element(users.begin(), users.end());
  if (*std::min_element(users.begin(), users.end()) < 1 || max_users > 4096) {
    throw UsageError(fmt::format("--users: expected numbers from 1 to 4096, got {}", o.users));
  }
  Runtime runtime(o.model);
  const double roof_gb_s = measure_roof(runtime);  // before the weights take their memory
  // Prompts of the repeat before stay in the cache until their space is needed.
  runtime.start(2 * max_users * o.tokens_per_user(), max_users);
  catch_interrupts();
  Bench bench(runtime, o, roof_gb_s);
  bench.warm_up();
  if (!o.json) {
    fmt::print("{}: {} threads, {} stages, compute {}, memory reads {} GB/s\n\n",
               runtime.checkpoint().path().filename().string(), runtime.n_threads(),
               runtime.plan().stages.size(), o.model.compute, short_number(roof_gb_s));
    fmt::print("{:>5}{:>24}{:>24}{:>10}{:>11}{:>6}\n", "users", "prefill tokens/s",
               "decode tokens/s", "GB/s", "of memory", "joins");
  }
  Json rows = Json::array();
  for (const int n : users) {
    Progress progress("bench", o.json || o.model.quiet);
    const Row row = bench.measure(n, progress);
    if (interrupted()) return kInterrupted;
    if (o.json) {
      rows.push_back(row_to_json(row, o));
    } else {
      progress.clear();
      print_row(row);
    }
  }
  if (o.json) {
    print_json(Json{{"model", runtime.checkpoint().path().string()},
                    {"threads", runtime.n_threads()},
                    {"stages", runtime.plan().stages.size()},
                    {"compute", o.model.compute},
                    {"speculate", o.model.speculate},
                    {"weight_bytes", runtime.pipeline().weight_bytes()},
                    {"cache_bytes", runtime.pipeline().cache_bytes()},
                    {"peak_resident_bytes", peak_resident_bytes()},
                    {"rows", std::move(rows)}});
  } else {
    fmt::print("\nmemory: weights {}, cache {}, peak resident {}\n",
               bytes_text(double(runtime.pipeline().weight_bytes())),
               bytes_text(double(runtime.pipeline().cache_bytes())),
               bytes_text(double(peak_resident_bytes())));
  }
  return kOk;
}

}  // namespace sluice
