// The life of a request, from submit() to its last event.
#include "engine/scheduler.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

/// Beyond this, priorities are all the same; keeps the key exact.
constexpr int kMaxPriority = 1000000;

std::string refuse_sampling(const SamplingParams& p) {
  auto outside = [](float x, float low, float high) { return !(x >= low && x <= high); };
  if (outside(p.temperature, 0, 1e6f)) {
    return fmt::format("temperature: expected 0 to 1e6, got {}", p.temperature);
  }
  if (p.top_k < 0) return fmt::format("top_k: expected 0 or more, got {}", p.top_k);
  if (outside(p.top_p, 0, 1)) return fmt::format("top_p: expected 0 to 1, got {}", p.top_p);
  if (outside(p.min_p, 0, 1)) return fmt::format("min_p: expected 0 to 1, got {}", p.min_p);
  if (outside(p.typical_p, 0, 1)) {
    return fmt::format("typical_p: expected 0 to 1, got {}", p.typical_p);
  }
  if (outside(p.repetition_penalty, 0.01f, 100)) {
    return fmt::format("repetition_penalty: expected 0.01 to 100, got {}", p.repetition_penalty);
  }
  if (outside(p.presence_penalty, -1e4f, 1e4f)) {
    return fmt::format("presence_penalty: expected -1e4 to 1e4, got {}", p.presence_penalty);
  }
  if (outside(p.frequency_penalty, -1e4f, 1e4f)) {
    return fmt::format("frequency_penalty: expected -1e4 to 1e4, got {}", p.frequency_penalty);
  }
  for (const auto& [token, bias] : p.logit_bias) {
    if (!(bias <= 1e30f)) {
      return fmt::format("logit_bias of token {}: expected at most 1e30, got {}", token, bias);
    }
  }
  return "";
}

TokenEvent last_event(FinishReason reason, std::string error = "") {
  TokenEvent event;
  event.finish = reason;
  event.error = std::move(error);
  return event;
}

}  // namespace

void EngineOptions::validate() const {
  auto at_least = [](const char* name, int value, int least) {
    if (value < least) {
      throw Error(ErrorCode::kInvalidInput, "engine: {}: expected {} or more, got {}", name, least,
                  value);
    }
  };
  at_least("chunk", chunk, 1);
  at_least("mixed_rows", mixed_rows, 1);
  at_least("max_sequences", max_sequences, 1);
  at_least("max_context", max_context, 0);
  at_least("vocab_size", vocab_size, 0);
  at_least("max_draft", max_draft, 0);
  if (!(ageing_us > 0)) {
    throw Error(ErrorCode::kInvalidInput, "engine: ageing_us: expected more than 0, got {}",
                ageing_us);
  }
}

Scheduler::Scheduler(const EngineOptions& options, CachePools pools, int depth)
    : options_(options), depth_(depth), book_(pools) {
  options.validate();
  CHECK(depth >= 1);
  if (pools.n_pages < 1) {
    throw Error(ErrorCode::kResource, "engine: cache pages: expected 1 or more, got {}",
                pools.n_pages);
  }
  limit_ = std::min(pools.n_pages, INT_MAX / kPageTokens - 1) * kPageTokens;
  if (options_.max_context > 0) limit_ = std::min(limit_, options_.max_context);
  if (options_.speculation == Speculation::kOff) options_.max_draft = 0;
  stats_.drafted.resize(static_cast<size_t>(options_.max_draft));
  stats_.accepted.resize(static_cast<size_t>(options_.max_draft));
}

std::string Scheduler::refuse(const Request& request) const {
  if (request.prompt.empty()) return "prompt: expected at least one token, got none";
  const Token vocab =
      options_.vocab_size > 0 ? options_.vocab_size : std::numeric_limits<Token>::max();
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const Token token = request.prompt[i];
    if (token < 0 || token >= vocab) {
      return fmt::format("prompt: token {}: expected 0 to {}, got {}", i, vocab - 1, token);
    }
  }
  if (request.max_tokens < 0) {
    return fmt::format("max_tokens: expected 0 or more, got {}", request.max_tokens);
  }
  const size_t room = static_cast<size_t>(limit_) - (request.max_tokens > 0 ? 1 : 0);
  if (request.prompt.size() > room) {
    return fmt::format("prompt: expected at most {} tokens (the context holds {}), got {}", room,
                       limit_, request.prompt.size());
  }
  return refuse_sampling(request.sampling);
}

Scheduler::SequencePtr Scheduler::make_sequence(Request request, double now_us) {
  auto sequence = std::make_shared<Sequence>();
  Sequence& s = *sequence;
  s.id = next_id_++;
  s.request = std::move(request);
  const Request& r = s.request;
  s.tokens = r.prompt;
  s.n_prompt = s.n_tokens();
  s.limit = limit_;
  s.key = now_us - std::clamp(r.priority, -kMaxPriority, kMaxPriority) * options_.ageing_us;
  s.next_score_row = r.score_from >= 0 ? std::max(r.score_from, 1) - 1 : INT_MAX;
  s.sampling = std::make_shared<SamplingParams>(r.sampling);
  if (!s.never_ends() && r.min_tokens > 0 && !r.constraint) {
    auto no_end = std::make_shared<SamplingParams>(r.sampling);
    for (Token end : r.end_tokens) {
      no_end->logit_bias.push_back({end, -std::numeric_limits<float>::infinity()});
    }
    s.sampling_no_end = std::move(no_end);
  }
  s.speculates = options_.max_draft > 0 && r.speculate && r.max_tokens > 1;
  s.tokens.reserve(s.n_expected());
  s.looks_up = s.speculates && !options_.guesser;
  if (s.looks_up) s.lookup.start(s.tokens, s.n_expected());
  return sequence;
}

RequestId Scheduler::turn_away(Request request, TokenEvent event) {
  auto refused = std::make_shared<Sequence>();
  refused->id = event.request = next_id_++;
  refused->request = std::move(request);
  events_.push_back({refused, std::move(event)});
  return refused->id;
}

RequestId Scheduler::submit(Request request, double now_us) {
  if (!closed_.empty()) {
    ++stats_.cancelled;
    return turn_away(std::move(request), last_event(FinishReason::kAborted, closed_));
  }
  std::string error = refuse(request);
  if (!error.empty()) {
    ++stats_.failed;
    return turn_away(std::move(request), last_event(FinishReason::kError, std::move(error)));
  }
  const SequencePtr sequence = make_sequence(std::move(request), now_us);
  sequences_.emplace(sequence->id, sequence);
  waiting_.insert(sequence.get());
  return sequence->id;
}

RequestId Scheduler::fork(RequestId parent_id, Request request, double now_us) {
  const auto found = sequences_.find(parent_id);
  if (found == sequences_.end() || found->second->done) {
    throw Error(ErrorCode::kNotFound, "fork: request {}: expected one that is being served",
                parent_id);
  }
  const SequencePtr parent = found->second;
  request.prompt = parent->tokens;
  const bool needs_rows = request.score_from >= 0 || request.want_logits || request.want_hidden;
  const RequestId id = submit(std::move(request), now_us);
  const auto child = sequences_.find(id);
  // With rows under way the parent's state is not the one after its last token: start over.
  if (child == sequences_.end() || needs_rows || !parent->running || parent->n_in_flight > 0 ||
      std::ssize(running_) >= options_.max_sequences) {
    return id;
  }
  Sequence& s = *child->second;
  s.cache = book_.fork(parent->cache, parent->n_computed);
  s.n_computed = s.n_scheduled = s.n_cached = parent->n_computed;
  waiting_.erase(&s);
  running_.insert(&s);
  s.running = true;
  return id;
}

bool Scheduler::cancel(RequestId id, bool notify) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end() || found->second->done) return false;
  const SequencePtr sequence = found->second;
  if (notify) emit(*sequence, last_event(FinishReason::kCancelled));
  retire(*sequence, FinishReason::kCancelled);
  return true;
}

void Scheduler::close(const std::string& why) {
  closed_ = why;
  std::vector<SequencePtr> open;
  for (const auto& [id, sequence] : sequences_) {
    if (!sequence->done) open.push_back(sequence);
  }
  std::ranges::sort(open, {}, &Sequence::id);
  for (const SequencePtr& sequence : open) {
    emit(*sequence, last_event(FinishReason::kAborted, why));
    retire(*sequence, FinishReason::kAborted);
  }
}

void Scheduler::accept(const Result& result) {
  CHECK(!flights_.empty() && flights_.front()->id == result.batch);
  std::unique_ptr<Flight> owned = std::move(flights_.front());
  flights_.erase(flights_.begin());
  Flight& flight = *owned;
  double time_us = 0;
  stats_.stages.resize(std::max(stats_.stages.size(), result.stages.size()));
  for (size_t i = 0; i < result.stages.size(); ++i) {
    const StageTiming& timing = result.stages[i];
    StageTiming& sum = stats_.stages[i];
    sum.compute_us += timing.compute_us;
    sum.sync_us += timing.sync_us;
    sum.wire_us += timing.wire_us;
    sum.idle_us += timing.idle_us;
    sum.joins += timing.joins;
    time_us += timing.compute_us + timing.sync_us + timing.wire_us;
  }
  if (flight.decode_only) row_cost_.observe(static_cast<int>(flight.rows.size()), time_us);

  size_t n_rows_seen = 0;
  for (Work& work : flight.work) {
    const size_t first = n_rows_seen;
    while (n_rows_seen < result.rows.size() &&
           result.rows[n_rows_seen].row < work.first_row + work.n_rows) {
      ++n_rows_seen;
    }
    absorb(flight, work, result, std::span(result.rows).subspan(first, n_rows_seen - first));
  }
  for (int32_t slot : flight.loaded_slots) book_.release_slot(slot);
  flight.clear();
  spare_flights_.push_back(std::move(owned));
}

std::span<const int32_t> Scheduler::Flight::draft_slots_of(const Work& w) const {
  if (draft_slots.empty()) return {};
  return std::span(draft_slots).subspan(w.first_draft, static_cast<size_t>(w.n_drafts));
}

void Scheduler::Flight::clear() {
  rows.clear();
  work.clear();
  draft_slots.clear();
  loaded_slots.clear();
  decode_only = true;
}

void Scheduler::absorb(const Flight& flight, Work& work, const Result& result,
                       std::span<const RowResult> rows) {
  Sequence& s = *work.sequence;
  --s.n_in_flight;
  if (s.done || !result.error.empty()) {
    for (int32_t slot : flight.draft_slots_of(work)) book_.release_slot(slot);
    if (!s.done) {
      fail(s, result.error);
    } else if (s.n_in_flight == 0) {
      dispose(s);
    }
    return;
  }
  tell_vectors(flight, work, &BatchRow::logits, result.logits, &TokenEvent::logits);
  tell_vectors(flight, work, &BatchRow::hidden, result.hidden, &TokenEvent::hidden);
  if (!take_prompt_results(s, flight, rows)) return;
  if (work.samples) {
    take_tokens(flight, work, rows);
    return;
  }
  s.n_computed += work.n_rows;
  if (s.n_computed < s.n_tokens()) return;
  emit(s, last_event(FinishReason::kLength));
  retire(s, FinishReason::kLength);
}

/// `values` are (rows that are `wanted`, width) of the whole batch.
void Scheduler::tell_vectors(const Flight& flight, const Work& work, bool BatchRow::*wanted,
                             const std::vector<float>& values,
                             std::vector<float> TokenEvent::*told) {
  if (values.empty() || !work.sequence->wants_vectors()) return;
  const auto count = [&](int first, int last) {
    return std::count_if(flight.rows.begin() + first, flight.rows.begin() + last,
                         [&](const BatchRow& row) { return row.*wanted; });
  };
  const int end = work.first_row + work.n_rows;
  const auto n = count(work.first_row, end);
  if (n == 0) return;
  const auto width = std::ssize(values) / count(0, static_cast<int>(flight.rows.size()));
  const auto first = values.begin() + count(0, work.first_row) * width;
  TokenEvent event;
  event.position = std::find_if(flight.rows.begin() + work.first_row, flight.rows.end(),
                                [&](const BatchRow& row) { return row.*wanted; })
                       ->position;
  (event.*told).assign(first, first + n * width);
  emit(*work.sequence, std::move(event));
}

bool Scheduler::take_prompt_results(Sequence& s, const Flight& flight,
                                    std::span<const RowResult> rows) {
  for (const RowResult& row : rows) {
    if (flight.rows[static_cast<size_t>(row.row)].target < 0) continue;
    if (!row.error.empty()) {
      fail(s, row.error);
      return false;
    }
    s.prompt_logprobs.push_back(row.target_logprob);
  }
  return true;
}

void Scheduler::take_tokens(const Flight& flight, Work& work, std::span<const RowResult> rows) {
  Sequence& s = *work.sequence;
  const int n_before = s.n_computed;
  const int n_given = work.n_rows - work.n_drafts;  // rows of tokens that are known to be right
  const int n_tokens_before = s.n_tokens();
  FinishReason reason = FinishReason::kNone;
  std::string error;
  int n_accepted = 0;
  for (const RowResult& row : rows) {
    const BatchRow& asked = flight.rows[static_cast<size_t>(row.row)];
    if (!asked.sample) continue;
    // A guess counts if it is the token that was drawn before it.
    if (asked.position >= n_tokens_before) {
      if (asked.token != s.tokens.back()) break;
      ++n_accepted;
    }
    error = row.error;
    reason = error.empty() ? append(s, row.token, error) : FinishReason::kError;
    if (reason == FinishReason::kError) break;
    TokenEvent event;
    event.token = row.token;
    event.position = s.n_tokens() - 1;
    event.logprob = row.logprob;
    event.top = row.top;
    event.drafted = asked.position >= n_tokens_before;
    event.finish = reason;
    emit(s, std::move(event));
    if (reason != FinishReason::kNone) break;
  }
  const int n_kept = n_given + n_accepted;
  s.n_computed = s.n_scheduled = n_before + n_kept;
  if (book_.recurrent() && work.decode) keep_states(flight, work, n_before, n_kept);
  if (work.n_drafts > 0) {
    book_.trim(s.cache, s.n_computed);
    if (s.looks_up) s.lookup.settle(work.n_drafts, n_accepted, work.row_cost);
    for (int i = 0; i < work.n_drafts; ++i) ++stats_.drafted[static_cast<size_t>(i)];
    for (int i = 0; i < n_accepted; ++i) ++stats_.accepted[static_cast<size_t>(i)];
  }
  if (reason == FinishReason::kError) {
    fail(s, error);
  } else if (reason != FinishReason::kNone) {
    retire(s, reason);
  } else if (!work.decode) {
    remember(s);
  }
}

/// Adds the token that was drawn, and says whether it is the last.
FinishReason Scheduler::append(Sequence& s, Token token, std::string& error) {
  s.tokens.push_back(token);
  if (s.looks_up) s.lookup.append(token);
  ++stats_.generated_tokens;
  const auto& ends = s.request.end_tokens;
  if (!s.request.ignore_end && std::find(ends.begin(), ends.end(), token) != ends.end()) {
    return FinishReason::kStop;
  }
  if (s.request.constraint) {
    try {
      if (!s.request.constraint->accept(token)) {
        error = fmt::format("constraint: token {} was allowed, then refused", token);
      }
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    if (!error.empty()) return FinishReason::kError;
  }
  const bool full = s.n_generated() >= s.request.max_tokens || s.n_tokens() >= s.limit;
  return full ? FinishReason::kLength : FinishReason::kNone;
}

/// Of the states after each row, makes the last verified one current and lets go of the others.
void Scheduler::keep_states(const Flight& flight, const Work& work, int n_before, int n_kept) {
  const std::span<const int32_t> slots = flight.draft_slots_of(work);
  SequenceCache& cache = work.sequence->cache;
  for (int i = 0; i < n_kept; ++i) {
    const int n_positions = n_before + i + 1;
    if (n_positions % kPageTokens != 0 || !keeps_prefix(*work.sequence)) continue;
    book_.drop_snapshots(cache);
    book_.add_snapshot(cache, n_positions,
                       i == 0 ? cache.state : slots[static_cast<size_t>(i) - 1]);
  }
  for (int i = 0; i < work.n_drafts; ++i) {
    const int32_t slot = slots[static_cast<size_t>(i)];
    if (i + 2 == n_kept) {
      book_.set_state(cache, slot);
    } else {
      book_.release_slot(slot);
    }
  }
}

void Scheduler::emit(Sequence& s, TokenEvent event) {
  event.request = s.id;
  if (!std::exchange(s.spoke, true)) {
    event.n_cached = s.n_cached;
    event.admitted_us = s.admitted_us;
  }
  const bool is_vector = !event.logits.empty() || !event.hidden.empty();
  if (!is_vector) event.prompt_logprobs = std::exchange(s.prompt_logprobs, {});
  events_.push_back({sequences_.at(s.id), std::move(event)});
}

void Scheduler::fail(Sequence& s, std::string error) {
  emit(s, last_event(FinishReason::kError, std::move(error)));
  retire(s, FinishReason::kError);
}

void Scheduler::retire(Sequence& s, FinishReason reason) {
  switch (reason) {
    case FinishReason::kCancelled:
    case FinishReason::kAborted:
      ++stats_.cancelled;
      break;
    case FinishReason::kError:
      ++stats_.failed;
      s.request.use_prefix_cache = false;  // nobody shall build on what went wrong
      break;
    default:
      ++stats_.finished;
  }
  waiting_.erase(&s);
  running_.erase(&s);
  s.done = true;
  if (s.n_in_flight == 0) dispose(s);
}

void Scheduler::preempt(Sequence& s) {
  CHECK(s.running && s.n_in_flight == 0);
  ++stats_.preemptions;
  remember(s);
  book_.release(s.cache);
  s.n_computed = s.n_scheduled = 0;
  s.running = false;
  running_.erase(&s);
  waiting_.insert(&s);
}

void Scheduler::dispose(Sequence& s) {
  remember(s);
  book_.release(s.cache);
  s.running = false;
  sequences_.erase(s.id);
}

void Scheduler::remember(Sequence& s) {
  if (!keeps_prefix(s) || !s.running) return;
  book_.remember(s.tokens, s.n_computed, s.cache);
  book_.drop_snapshots(s.cache);
}

void Scheduler::take_events(std::vector<Emission>& events) {
  events.clear();
  events_.swap(events);
}

EngineStats Scheduler::stats() const {
  EngineStats stats = stats_;
  stats.n_running = static_cast<int>(running_.size());
  stats.n_waiting = static_cast<int>(waiting_.size());
  stats.n_pages = book_.n_pages();
  stats.n_free_pages = book_.n_free_pages();
  stats.n_cached_pages = book_.tree().n_pages();
  stats.n_slots = book_.n_slots();
  stats.n_free_slots = book_.n_free_slots();
  stats.n_cached_slots = book_.tree().n_snapshots();
  return stats;
}

}  // namespace sluice
