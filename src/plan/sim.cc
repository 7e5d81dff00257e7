#include "plan/sim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "base/error.h"
#include "engine/engine.h"
#include "plan/sim_trace.h"

namespace sluice {
namespace {

/// Steps between two looks at the queue.
constexpr uint64_t kLook = 16;
/// A queue this long, in multiples of what is served at once, will not shrink in a useful time.
constexpr int kHopeless = 20;
/// Waiting times that grow by so much between two quarters of a run grow without end.
constexpr double kGrowth = 1.5;

class LoggedExecutor : public Executor {
 public:
  LoggedExecutor(Executor& inner, BatchLog* log) : inner_(inner), log_(log) {}

  void submit(Batch& batch) override {
    if (log_ != nullptr) {
      auto& entry = log_->emplace_back();
      for (const BatchSequence& s : batch.sequences) entry.emplace_back(s.id, s.n_rows);
    }
    inner_.submit(batch);
  }
  void next(Result& result) override { inner_.next(result); }
  int depth() const override { return inner_.depth(); }
  CachePools pools() const override { return inner_.pools(); }

 private:
  Executor& inner_;
  BatchLog* log_;
};

struct Record {
  Arrival asked;
  double first_us = -1, last_us = -1;
  int n_tokens = 0, n_cached = 0;

  double ttft_ms() const { return (first_us - asked.time_us) / 1e3; }
  double tpot_ms() const { return (last_us - first_us) / (n_tokens - 1) / 1e3; }
  double latency_ms() const { return (last_us - asked.time_us) / 1e3; }
};

/// Puts an engine under a load, and takes down when its tokens came.
class LoadRun {
 public:
  LoadRun(Workload& workload, const SimOptions& options) : workload_(workload), options_(options) {}

  /// What the model draws, for executors without one.
  Token token(RequestId id, int position) const {
    return text(records_[size_t(id) - 1].asked, position);
  }

  SimReport run(Executor& executor, LoadClock& clock, SimTrace* trace = nullptr) {
    LoggedExecutor logged(executor, options_.log);
    Engine engine(logged, engine_options());
    engine_ = &engine;
    clock_ = &clock;
    trace_ = trace;
    start_us_ = clock.now_us();
    for (uint64_t n_steps = 1;;) {
      submit_arrivals();
      if (!engine.idle()) {
        engine.step(clock.now_us());
        if (++n_steps % kLook == 0) look_at_queue();
      } else if (std::isfinite(next_us())) {
        clock.wait_until(start_us_ + next_us());
      } else {
        if (!error_.empty()) throw Error(ErrorCode::kResource, "{}", error_);
        return report();
      }
    }
  }

 private:
  EngineOptions engine_options() {
    EngineOptions out = options_.engine;
    if (options_.draft.length == 0) return out;
    CHECK(!options_.draft.fills_pipe);
    out.speculation = Speculation::kNgram;
    out.max_draft = options_.draft.length;
    out.guesser = [this](RequestId id, int n_tokens, int most, std::vector<Token>& guesses) {
      const int n_right = accepted_guesses(options_.draft, options_.seed, id, n_tokens);
      for (int i = 0; i < most; ++i) {
        const Token right = token(id, n_tokens + i);
        guesses.push_back(i < n_right ? right : (right + 1) % options_.vocab);
      }
    };
    return out;
  }

  double now_us() const { return clock_->now_us() - start_us_; }

  Token text(const Arrival& asked, int position) const {
    return synthetic_token(asked.session, position, options_.n_shared, options_.vocab);
  }

  void submit_arrivals() {
    while (!gave_up_ && workload_.next_us() <= now_us()) {
      const Arrival asked = workload_.take();
      if (!fits(asked)) {
        ++n_refused_;
        workload_.finished(asked, now_us());
        continue;
      }
      if (options_.prefill != nullptr) {
        send(asked);
      } else {
        submit(asked);
      }
    }
    for (; !sent_.empty() && sent_.front().first <= now_us(); sent_.pop_front()) {
      submit(sent_.front().second);
    }
  }

  /// When there is something to submit; infinity: never.
  double next_us() const {
    double next = std::numeric_limits<double>::infinity();
    if (!sent_.empty()) next = sent_.front().first;
    return gave_up_ ? next : std::min(next, workload_.next_us());
  }

  /// Through the prefill pool, behind all who asked before.
  void send(const Arrival& asked) {
    const double compute_us = options_.prefill->compute_us(asked.prompt);
    const double transfer_us = options_.prefill->transfer_us(asked.prompt);
    pool_free_us_ = std::max(pool_free_us_, asked.time_us) + compute_us;
    link_free_us_ = std::max(link_free_us_, pool_free_us_) + transfer_us;
    pool_busy_us_ += compute_us;
    link_busy_us_ += transfer_us;
    sent_.emplace_back(link_free_us_, asked);
  }

  void submit(const Arrival& asked) {
    records_.push_back({.asked = asked});
    const RequestId id = engine_->submit(request(records_.size() - 1));
    CHECK(id == records_.size());
  }

  bool fits(const Arrival& asked) const {
    return int64_t(asked.prompt) + asked.output <= options_.most_tokens();
  }

  Request request(size_t index) {
    const Arrival asked = records_[index].asked;
    Request request;
    request.prompt.resize(size_t(asked.prompt));
    for (int i = 0; i < asked.prompt; ++i) {
      request.prompt[size_t(i)] = text(asked, i);
    }
    request.sampling.temperature = 0;
    request.max_tokens = asked.output;
    request.sink = [this, index](const TokenEvent& event) {
      receive(index, event);
      return true;
    };
    return request;
  }

  void receive(size_t index, const TokenEvent& event) {
    Record& record = records_[index];
    if (event.token >= 0) {
      if (record.n_tokens++ == 0) {
        record.first_us = now_us();
        record.n_cached = event.n_cached;
      }
      record.last_us = now_us();
    }
    if (event.finish == FinishReason::kNone) return;
    if (!event.error.empty()) error_ = event.error;
    if (trace_ != nullptr) {
      trace_->add({record.asked.time_us, record.first_us, record.last_us, record.asked.prompt,
                   record.n_tokens});
    }
    workload_.finished(record.asked, now_us());
  }

  void look_at_queue() {
    const EngineStats stats = engine_->stats();
    waiting_.push_back(stats.n_waiting);
    if (workload_.is_open() && stats.n_waiting > kHopeless * options_.engine.max_sequences + 100) {
      gave_up_ = true;
    }
  }

  double mean_waiting(size_t first, size_t last) const {
    double sum = 0;
    for (size_t i = first; i < last; ++i) sum += waiting_[i];
    return last > first ? sum / double(last - first) : 0;
  }

  /// Whether requests wait longer the later they come; with users who wait for their answers,
  /// whether some always wait.
  bool is_saturated() const {
    if (gave_up_) return true;
    if (!workload_.is_open()) {
      const size_t n = waiting_.size();
      return mean_waiting(n / 4, n - n / 4) > 0.5;
    }
    // Times to the first token, in the order of arrival: the second quarter and the last.
    std::vector<double> early, late;
    const size_t n = records_.size();
    for (size_t i = n / 4; i < n; ++i) {
      if (i < n / 2) early.push_back(records_[i].ttft_ms());
      if (i >= n - n / 4) late.push_back(records_[i].ttft_ms());
    }
    if (early.size() < 10) return false;
    return percentiles(std::move(late)).p50 > kGrowth * percentiles(std::move(early)).p50;
  }

  SimReport report() const;

  Workload& workload_;
  const SimOptions& options_;
  SimTrace* trace_ = nullptr;
  std::vector<Record> records_;
  std::vector<int> waiting_;                     // each kLook steps
  std::deque<std::pair<double, Arrival>> sent_;  // when their caches are there
  double pool_free_us_ = 0, link_free_us_ = 0, pool_busy_us_ = 0, link_busy_us_ = 0;
  int n_refused_ = 0;
  bool gave_up_ = false;
  std::string error_;
  Engine* engine_ = nullptr;
  LoadClock* clock_ = nullptr;
  double start_us_ = 0;
};

SimReport LoadRun::report() const {
  SimReport out;
  out.n_finished = int(records_.size());
  out.n_refused = n_refused_;
  out.n_dropped = gave_up_ ? workload_.remaining() : 0;
  std::vector<double> ttft, tpot, latency;
  double prompt_tokens = 0, output_tokens = 0, cached = 0, n_good = 0;
  for (const Record& r : records_) {
    prompt_tokens += r.asked.prompt;
    output_tokens += r.n_tokens;
    cached += r.n_cached;
    ttft.push_back(r.ttft_ms());
    latency.push_back(r.latency_ms());
    bool is_good = options_.max_ttft_ms == 0 || r.ttft_ms() <= options_.max_ttft_ms;
    if (r.n_tokens > 1) {
      tpot.push_back(r.tpot_ms());
      is_good &= options_.max_tpot_ms == 0 || r.tpot_ms() <= options_.max_tpot_ms;
    }
    n_good += is_good;
  }
  out.saturated = is_saturated();
  out.ttft_ms = percentiles(std::move(ttft));
  out.tpot_ms = percentiles(std::move(tpot));
  out.latency_ms = percentiles(std::move(latency));
  out.duration_s = now_us() / 1e6;
  const double seconds = std::max(out.duration_s, 1e-9);
  out.output_tok_s = output_tokens / seconds;
  out.prompt_tok_s = prompt_tokens / seconds;
  out.goodput_req_s = n_good / seconds;
  out.good_share = out.n_finished > 0 ? n_good / out.n_finished : 0;
  out.cached_share = prompt_tokens > 0 ? cached / prompt_tokens : 0;
  const EngineStats stats = engine_->stats();
  out.batches = stats.batches;
  out.rows = stats.rows;
  out.preemptions = stats.preemptions;
  if (!stats.drafted.empty() && stats.drafted[0] > 0) {
    double kept = 0;
    for (uint64_t n : stats.accepted) kept += double(n);
    out.accepted += kept / double(stats.drafted[0]);
  }
  out.mean_waiting = mean_waiting(0, waiting_.size());
  out.prefill_busy = pool_busy_us_ / 1e6 / seconds;
  out.link_busy = link_busy_us_ / 1e6 / seconds;
  for (const StageTiming& t : stats.stages) {
    out.busy.push_back((t.compute_us + t.sync_us) / 1e6 / seconds);
  }
  return out;
}

}  // namespace

int64_t SimOptions::most_tokens() const {
  const int64_t held = int64_t(pools.n_pages) * kPageTokens;
  return engine.max_context > 0 ? std::min<int64_t>(held, engine.max_context) : held;
}

Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double value : values) sum += value;
  const double n = double(values.size());
  const auto rank = [&](double share) { return values[size_t(std::ceil(share * n)) - 1]; };
  return {sum / n, rank(0.5), rank(0.9), rank(0.99)};
}

SimReport simulate(const SimRoute& route, const BatchCost& cost, Workload& workload,
                   const SimOptions& options, SimTrace* trace) {
  LoadRun run(workload, options);
  SimExecutor executor(route, cost, options.pools,
                       [&](RequestId id, int position) { return run.token(id, position); });
  if (trace != nullptr) executor.on_span = [trace](const SimSpan& span) { trace->add(span); };
  SimReport report = run.run(executor, executor, trace);
  report.busy.resize(route.stages.size());
  return report;
}

SimReport serve_load(Executor& executor, LoadClock& clock, Workload& workload,
                     const SimOptions& options) {
  return LoadRun(workload, options).run(executor, clock);
}

}  // namespace sluice
