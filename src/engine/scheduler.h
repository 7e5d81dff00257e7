// Decides what the next batch computes, and keeps the books of cache space. No threads, no clock,
// no I/O: the simulator drives the same code.
//
// Continuous batching. Decode rows go first; what is left of the budget of `chunk` rows goes to
// prompts, in order of priority; beside decoding sequences a prompt gets few rows at a time, so
// that their streams do not stall. A sequence whose sampled token is under way is not given out
// again; the chunks of one prompt may follow each other. With `depth` batches under way each takes
// its share of the decoding sequences, so that every stage has work. When space runs out, old
// prefixes go first, then the sequence that is last in order gives up its space and is computed
// again later.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/cache_book.h"
#include "engine/drafter.h"
#include "engine/options.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/stats.h"

namespace sluice {

/// An event for the sink of `sequence`.
struct Emission {
  std::shared_ptr<Sequence> sequence;
  TokenEvent event;
};

/// Rows of a chunk of a prompt of `n_tokens` with `depth` batches under way: one chunk for each, so
/// that the stages work on a single prompt at the same time.
int prompt_share(int n_tokens, int depth);

class Scheduler {
 public:
  /// Throws kInvalidInput for options out of range or pools without pages.
  Scheduler(const EngineOptions& options, CachePools pools, int depth);

  /// Queues a request that arrives at `now_us`. A request that is wrong or can never fit gets an
  /// event with kError.
  RequestId submit(Request request, double now_us);
  /// As submit() of a request whose prompt is the parent's tokens so far (`request.prompt` is
  /// replaced by them), but it shares the parent's cache where it can. Throws kNotFound.
  RequestId fork(RequestId parent, Request request, double now_us);
  /// Frees what the request holds, at the latest when its batches under way have come back.
  /// `notify`: the sink gets a last event with kCancelled. False if there is no such request (any
  /// more).
  bool cancel(RequestId id, bool notify = true);
  /// Cancels all requests, and refuses those to come: their sinks get a last event with kAborted
  /// that says `why`.
  void close(const std::string& why);

  /// Makes `batch` the next one: empty if there is nothing to do until a result comes back.
  void next(Batch& batch, double now_us);
  /// The results must come in the order of the batches.
  void accept(const Result& result);
  /// What there is to tell since the last call, in order, instead of what is in `events`.
  void take_events(std::vector<Emission>& events);

  /// Nothing waits, runs or is under way, and all events were taken.
  bool idle() const { return sequences_.empty() && events_.empty(); }
  int n_in_flight() const { return static_cast<int>(flights_.size()); }
  EngineStats stats() const;
  const CacheBook& book() const { return book_; }
  /// Forgets all cached prefixes.
  void forget_prefixes() { book_.forget(); }

 private:
  using SequencePtr = std::shared_ptr<Sequence>;

  /// The rows of one sequence in a batch under way.
  struct Work {
    SequencePtr sequence;
    int first_row = 0, n_rows = 0;
    bool decode = false;
    bool samples = false;
    int n_drafts = 0;        // the last rows are guesses
    size_t first_draft = 0;  // of the flight's guesses
    double row_cost = 0;
  };
  struct Flight {
    uint64_t id = 0;
    std::vector<BatchRow> rows;
    std::vector<Work> work;
    std::vector<int32_t> draft_slots;   // recurrent models: the state after each guess
    std::vector<int32_t> loaded_slots;  // read by the batch, to be released after it
    bool decode_only = true;

    std::span<const int32_t> draft_slots_of(const Work& work) const;
    void clear();
  };
  using Masks = std::vector<std::vector<uint32_t>>;
  struct Decodes {
    int n_decoding = 0;          // sequences, also in batches under way
    bool prefill_waits = false;  // others have prompt rows to give out
  };

  // scheduler_batch.cc: composing a batch
  void admit(double now_us);
  bool try_admit(Sequence& sequence);
  bool preempt_for(const Sequence& sequence);
  bool make_room(Batch& batch, Sequence& sequence, int n_rows);
  Decodes add_decodes(Batch& batch, Flight& flight);
  void add_decode(Batch& batch, Flight& flight, const SequencePtr& sequence, int max_draft,
                  int n_decodes);
  int prompt_budget(int n_decoding) const;
  void add_prefills(Batch& batch, Flight& flight, int n_rows_at_most);
  void add_prefill(Batch& batch, Flight& flight, const SequencePtr& sequence, int n_rows);
  void add_rows(Batch& batch, Flight& flight, Work work, Masks masks);
  int32_t add_states(Batch& batch, Flight& flight, Work& work);
  void guess(Sequence& sequence, int max_draft, double row_cost);
  bool constrain(Sequence& sequence, Masks& masks);
  BatchSequence& add_sequence(Batch& batch);
  void recycle(Batch& batch);
  int prefill_rows(const Sequence& sequence, int budget) const;

  // scheduler.cc: the life of a request
  std::string refuse(const Request& request) const;
  RequestId turn_away(Request request, TokenEvent event);
  SequencePtr make_sequence(Request request, double now_us);
  void start(const SequencePtr& sequence);
  void absorb(const Flight& flight, Work& work, const Result& result,
              std::span<const RowResult> rows);
  void tell_vectors(const Flight& flight, const Work& work, bool BatchRow::*wanted,
                    const std::vector<float>& values, std::vector<float> TokenEvent::*told);
  bool take_prompt_results(Sequence& sequence, const Flight& flight,
                           std::span<const RowResult> rows);
  void take_tokens(const Flight& flight, Work& work, std::span<const RowResult> rows);
  FinishReason append(Sequence& sequence, Token token, std::string& error);
  void keep_states(const Flight& flight, const Work& work, int n_before, int n_kept);
  void emit(Sequence& sequence, TokenEvent event);
  void fail(Sequence& sequence, std::string error);
  void retire(Sequence& sequence, FinishReason reason);
  void preempt(Sequence& sequence);
  void dispose(Sequence& sequence);
  void remember(Sequence& sequence);
  bool keeps_prefix(const Sequence& sequence) const {
    return options_.prefix_cache && sequence.request.use_prefix_cache;
  }

  EngineOptions options_;
  std::string closed_;  // why; empty: it is open
  int depth_;
  int limit_;  // most tokens of any sequence
  CacheBook book_;
  RowCost row_cost_;
  RequestId next_id_ = 1;
  uint64_t next_batch_ = 1, next_turn_ = 1;
  std::unordered_map<RequestId, SequencePtr> sequences_;
  std::set<Sequence*, SoonerSequence> waiting_;
  SequenceList running_;
  std::vector<std::unique_ptr<Flight>> flights_;  // oldest first
  std::vector<Emission> events_;
  EngineStats stats_;

  // Kept for their memory: a decode step allocates nothing.
  std::vector<std::unique_ptr<Flight>> spare_flights_;
  std::vector<BatchSequence> spare_sequences_;
  std::vector<SequencePtr> ready_;
  std::vector<Token> drafts_;  // the guesses of the sequence at hand
};

}  // namespace sluice
