// Composing a batch: who is admitted, who decodes, which prompt goes on.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "engine/scheduler.h"

namespace sluice {
namespace {

/// Rows whose vectors are wanted, per sequence and batch: keeps a result small for any vocabulary.
constexpr int kMaxVectorRows = 64;

/// Prompt rows per decoding sequence, where that is more than `mixed_rows`.
constexpr int kPromptRowsPerDecode = 2;

int round_up_to_page(int n) { return CacheBook::pages_for(n) * kPageTokens; }

}  // namespace

void Scheduler::next(Batch& batch, double now_us) {
  recycle(batch);
  if (spare_flights_.empty()) spare_flights_.push_back(std::make_unique<Flight>());
  std::unique_ptr<Flight> owned = std::move(spare_flights_.back());
  spare_flights_.pop_back();
  Flight& flight = *owned;
  batch.id = flight.id = next_batch_;
  admit(now_us);
  const Decodes decodes = add_decodes(batch, flight);
  if (decodes.prefill_waits) add_prefills(batch, flight, prompt_budget(decodes.n_decoding));
  ready_.clear();  // what is served may end before the next batch, and must not be held here
  if (batch.empty()) {
    CHECK(!flights_.empty() || sequences_.empty() || !events_.empty());
    spare_flights_.push_back(std::move(owned));
    return;
  }
  ++next_batch_;
  ++stats_.batches;
  stats_.rows += batch.rows.size();
  flight.rows = batch.rows;
  flights_.push_back(std::move(owned));
}

/// Empties a batch and keeps the memory of its parts.
void Scheduler::recycle(Batch& batch) {
  for (BatchSequence& sequence : batch.sequences) {
    sequence.sampling.reset();
    spare_sequences_.push_back(std::move(sequence));
  }
  batch.sequences.clear();
  batch.rows.clear();
  batch.page_copies.clear();
  batch.masks.clear();
}

BatchSequence& Scheduler::add_sequence(Batch& batch) {
  if (spare_sequences_.empty()) return batch.sequences.emplace_back();
  BatchSequence& sequence = batch.sequences.emplace_back(std::move(spare_sequences_.back()));
  spare_sequences_.pop_back();
  sequence.history.clear();
  sequence.state_load = -1;
  return sequence;
}

void Scheduler::admit(double now_us) {
  // Strictly in order: a small request never passes a large one for ever.
  while (!waiting_.empty()) {
    Sequence& first = **waiting_.begin();
    if (std::ssize(running_) < options_.max_sequences && try_admit(first)) {
      waiting_.erase(&first);
      running_.insert(&first);
      first.running = true;
      if (!first.spoke) first.admitted_us = now_us;
    } else if (!preempt_for(first)) {
      return;
    }
  }
}

bool Scheduler::try_admit(Sequence& sequence) {
  int reusable = sequence.n_tokens() - 1;  // the last row is what the next token is drawn from
  if (sequence.next_score_row < sequence.n_prompt - 1) {
    reusable = std::min(reusable, sequence.next_score_row);
  }
  if (sequence.wants_vectors()) reusable = std::min(reusable, sequence.next_vector_row);
  int n_cached = 0;
  if (keeps_prefix(sequence)) n_cached = book_.attach(sequence.tokens, reusable, sequence.cache);
  const int n_positions = std::min(sequence.n_tokens() + 1, sequence.limit);
  // A page for each running sequence stays free, or it would soon be preempted.
  if (!book_.reserve(sequence.cache, n_positions, static_cast<int>(running_.size()))) {
    book_.release(sequence.cache);
    return false;
  }
  const int n_expected = static_cast<int>(sequence.n_expected()) + 1;
  sequence.cache.pages.reserve(static_cast<size_t>(CacheBook::pages_for(n_expected)));
  if (book_.recurrent()) sequence.cache.snapshots.reserve(4);
  sequence.n_computed = sequence.n_scheduled = n_cached;
  if (!sequence.spoke) sequence.n_cached = std::min(n_cached, sequence.n_prompt);
  stats_.cached_tokens += static_cast<uint64_t>(n_cached);
  return true;
}

bool Scheduler::preempt_for(const Sequence& sequence) {
  for (auto it = running_.rbegin(); it != running_.rend(); ++it) {
    if (!SoonerSequence()(&sequence, *it)) return false;
    if ((*it)->n_in_flight > 0) continue;
    preempt(**it);
    return true;
  }
  return false;
}

bool Scheduler::make_room(Batch& batch, Sequence& sequence, int n_rows) {
  for (;;) {
    CopyOnWrite copy;
    if ((!book_.recurrent() || book_.ensure_slot(sequence.cache)) &&
        book_.grow(sequence.cache, sequence.n_scheduled + n_rows) &&
        book_.own_page(sequence.cache, sequence.n_scheduled, copy)) {
      if (copy.from >= 0) batch.page_copies.push_back({copy.from, copy.to});
      return true;
    }
    if (!preempt_for(sequence)) return false;
  }
}

Scheduler::Decodes Scheduler::add_decodes(Batch& batch, Flight& flight) {
  ready_.clear();
  Decodes out;
  for (Sequence* sequence : running_) {
    if (sequence->n_pending() <= 1) ++out.n_decoding;
    if (sequence->decodes()) {
      ready_.push_back(sequences_.at(sequence->id));
    } else if (sequence->n_pending() > 0) {
      out.prefill_waits = true;
    }
  }
  // Who was longest without a row comes first.
  std::sort(ready_.begin(), ready_.end(), [](const SequencePtr& a, const SequencePtr& b) {
    return a->last_turn != b->last_turn ? a->last_turn < b->last_turn
                                        : SoonerSequence()(a.get(), b.get());
  });
  const int share = std::min((out.n_decoding + depth_ - 1) / depth_, options_.chunk);
  const int n_decodes = std::min(share, static_cast<int>(ready_.size()));
  int for_drafts = options_.chunk - n_decodes;
  if (out.prefill_waits) for_drafts /= 2;
  int n_added = 0;
  for (const SequencePtr& sequence : ready_) {
    if (n_added == n_decodes) break;
    if (!sequence->running || !make_room(batch, *sequence, 1)) continue;
    const size_t before = batch.rows.size();
    add_decode(batch, flight, sequence, for_drafts, n_decodes);
    if (batch.rows.size() == before) continue;
    ++n_added;
    for_drafts -= static_cast<int>(batch.rows.size() - before) - 1;
  }
  return out;
}

void Scheduler::add_decode(Batch& batch, Flight& flight, const SequencePtr& sequence, int max_draft,
                           int n_decodes) {
  Sequence& s = *sequence;
  Work work;
  work.sequence = sequence;
  work.decode = true;
  work.row_cost = row_cost_.relative(n_decodes);
  guess(s, max_draft, work.row_cost);
  Masks masks;
  if (!constrain(s, masks)) return;
  // Guesses take no space from other sequences.
  while (!drafts_.empty() &&
         !book_.grow(s.cache, s.n_tokens() + static_cast<int>(drafts_.size()))) {
    drafts_.pop_back();
  }
  work.first_draft = flight.draft_slots.size();
  for (size_t i = 0; book_.recurrent() && i < drafts_.size(); ++i) {
    const int32_t slot = book_.take_slot();
    if (slot < 0) {
      drafts_.resize(i);
    } else {
      flight.draft_slots.push_back(slot);
    }
  }
  work.n_drafts = static_cast<int>(drafts_.size());
  work.n_rows = 1 + work.n_drafts;
  if (!masks.empty()) masks.resize(drafts_.size() + 1);
  add_rows(batch, flight, std::move(work), std::move(masks));
}

void Scheduler::guess(Sequence& s, int max_draft, double row_cost) {
  drafts_.clear();
  if (!s.speculates) return;
  // Every guess may turn into a token, and one more follows the last.
  max_draft = std::min({max_draft, options_.max_draft, s.limit - s.n_tokens() - 1,
                        s.request.max_tokens - s.n_generated() - 1});
  // All rows of a batch have the same parameters, which change when end tokens become possible.
  if (s.n_generated() < s.request.min_tokens) {
    max_draft = std::min(max_draft, s.request.min_tokens - s.n_generated() - 1);
  }
  if (s.looks_up) {
    s.lookup.propose(max_draft, row_cost, drafts_);
  } else if (max_draft > 0) {
    options_.guesser(s.id, s.n_tokens(), max_draft, drafts_);
  }
}

/// The masks of the row of the last token and of the guesses after it; guesses that the constraint
/// refuses are cut off. False if the constraint itself failed, and with it the sequence.
bool Scheduler::constrain(Sequence& s, Masks& masks) {
  if (!s.request.constraint) return true;
  TokenConstraint& constraint = *s.request.constraint;
  try {
    int n_accepted = 0;
    for (size_t i = 0; i <= drafts_.size(); ++i) {
      std::vector<uint32_t>& mask = masks.emplace_back();
      constraint.allowed(mask);
      if (!s.never_ends() && s.n_generated() + static_cast<int>(i) < s.request.min_tokens) {
        std::vector<uint32_t> longer = mask;
        for (Token end : s.request.end_tokens) {
          const auto word = static_cast<size_t>(end) / 32;
          if (end >= 0 && word < longer.size()) longer[word] &= ~(1u << (end % 32));
        }
        // A constraint that allows nothing but the end prevails.
        if (std::any_of(longer.begin(), longer.end(), [](uint32_t w) { return w != 0; })) {
          mask = std::move(longer);
        }
      }
      if (i == drafts_.size()) break;
      if (!constraint.accept(drafts_[i])) {
        drafts_.resize(i);
        break;
      }
      ++n_accepted;
    }
    constraint.rollback(n_accepted);
  } catch (const std::exception& error) {
    fail(s, error.what());
    return false;
  }
  return true;
}

int prompt_share(int n_tokens, int depth) {
  if (depth == 1) return n_tokens;
  return std::max(round_up_to_page((n_tokens + depth - 1) / depth), 2 * kPageTokens);
}

int Scheduler::prefill_rows(const Sequence& s, int budget) const {
  int n = std::min({s.n_pending(), budget, prompt_share(s.n_tokens(), depth_)});
  if (s.wants_vectors() && s.n_scheduled < s.n_prompt) n = std::min(n, kMaxVectorRows);
  if (book_.recurrent() && n < s.n_pending()) {
    // A chunk that ends with a page leaves a state that the prefix tree can keep.
    const int end = (s.n_scheduled + n) / kPageTokens * kPageTokens;
    if (end > s.n_scheduled) n = end - s.n_scheduled;
  }
  return n;
}

int Scheduler::prompt_budget(int n_decoding) const {
  if (n_decoding == 0) return options_.chunk;
  const int share = (n_decoding + depth_ - 1) / depth_;
  return std::max(options_.mixed_rows, kPromptRowsPerDecode * share);
}

void Scheduler::add_prefills(Batch& batch, Flight& flight, int n_rows_at_most) {
  ready_.clear();
  for (Sequence* sequence : running_) {
    if (!sequence->decodes() && sequence->n_pending() > 0) {
      ready_.push_back(sequences_.at(sequence->id));
    }
  }
  const int limit = std::min(options_.chunk, static_cast<int>(batch.rows.size()) + n_rows_at_most);
  for (const SequencePtr& sequence : ready_) {
    const int budget = limit - static_cast<int>(batch.rows.size());
    if (budget <= 0) return;
    const int n_rows = prefill_rows(*sequence, budget);
    if (!sequence->running || !make_room(batch, *sequence, n_rows)) continue;
    add_prefill(batch, flight, sequence, n_rows);
  }
}

void Scheduler::add_prefill(Batch& batch, Flight& flight, const SequencePtr& sequence, int n_rows) {
  Work work;
  work.sequence = sequence;
  work.n_rows = n_rows;
  Masks masks;
  drafts_.clear();
  const bool is_last = n_rows == sequence->n_pending();
  if (is_last && sequence->request.max_tokens > 0 && !constrain(*sequence, masks)) {
    return;
  }
  flight.decode_only = false;
  stats_.prompt_tokens += static_cast<uint64_t>(n_rows);
  add_rows(batch, flight, std::move(work), std::move(masks));
}

void Scheduler::add_rows(Batch& batch, Flight& flight, Work work, Masks masks) {
  Sequence& s = *work.sequence;
  const int first = s.n_scheduled;
  work.first_row = static_cast<int>(batch.rows.size());
  BatchSequence& described = add_sequence(batch);
  described.id = s.id;
  described.first_row = work.first_row;
  described.n_rows = work.n_rows;
  for (int i = 0; i < work.n_rows; ++i) {
    BatchRow& row = batch.rows.emplace_back();
    row.position = first + i;
    row.token = row.position < s.n_tokens()
                    ? s.tokens[static_cast<size_t>(row.position)]
                    : drafts_[static_cast<size_t>(row.position - s.n_tokens())];
    row.sequence = static_cast<int32_t>(batch.sequences.size()) - 1;
    row.sample = row.position >= s.n_tokens() - 1 && s.request.max_tokens > 0;
    if (row.sample && !masks.empty()) {
      row.mask = static_cast<int32_t>(batch.masks.size());
      batch.masks.push_back(std::move(masks[static_cast<size_t>(row.position - s.n_tokens() + 1)]));
    }
    work.samples |= row.sample;
    if (row.position >= s.next_score_row && row.position < s.n_prompt - 1) {
      row.target = s.tokens[static_cast<size_t>(row.position) + 1];
      s.next_score_row = row.position + 1;
    }
    if (s.wants_vectors() && row.position >= s.next_vector_row && row.position < s.n_prompt) {
      row.logits = s.request.want_logits;
      row.hidden = s.request.want_hidden;
      s.next_vector_row = row.position + 1;
    }
  }
  const int end = first + work.n_rows;
  described.pages.reserve(s.cache.pages.capacity());
  described.pages.assign(s.cache.pages.begin(), s.cache.pages.begin() + CacheBook::pages_for(end));
  if (book_.recurrent()) described.state_load = add_states(batch, flight, work);
  const bool no_end = s.n_generated() < s.request.min_tokens && s.sampling_no_end;
  described.sampling = no_end ? s.sampling_no_end : s.sampling;
  described.n_prompt = s.n_prompt;
  if (work.samples && s.sampling->needs_history()) {
    described.history.reserve(s.tokens.capacity() + static_cast<size_t>(options_.max_draft));
    described.history = s.tokens;
    described.history.insert(described.history.end(), drafts_.begin(), drafts_.end());
  }
  s.n_scheduled = std::min(end, s.n_tokens());
  s.last_turn = next_turn_++;
  ++s.n_in_flight;
  flight.work.push_back(std::move(work));
}

/// Says where states are saved; returns the slot they start from.
int32_t Scheduler::add_states(Batch& batch, Flight& flight, Work& work) {
  SequenceCache& cache = work.sequence->cache;
  BatchRow* rows = batch.rows.data() + work.first_row;
  const int first = rows[0].position;
  const int32_t load = cache.state;
  int32_t loaded = -1;
  const int32_t save = book_.advance_state(cache, loaded);
  if (loaded >= 0) flight.loaded_slots.push_back(loaded);
  if (work.decode) {
    rows[0].state_save = save;
    for (int i = 0; i < work.n_drafts; ++i) {
      rows[1 + i].state_save = flight.draft_slots[work.first_draft + static_cast<size_t>(i)];
    }
    return load;
  }
  rows[work.n_rows - 1].state_save = save;
  if (!keeps_prefix(*work.sequence)) return load;
  // The last page boundary is where the same prompt will be taken up again; ends of chunks serve
  // prompts that share only a part.
  const int end = first + work.n_rows;
  const int boundary = (work.sequence->n_tokens() - 1) / kPageTokens * kPageTokens;
  if (boundary > first && boundary < end) {
    const int32_t slot = book_.take_slot();
    if (slot >= 0) {
      rows[boundary - first - 1].state_save = slot;
      book_.add_snapshot(cache, boundary, slot);
      book_.release_slot(slot);
    }
  } else if (end % kPageTokens == 0 && (end == boundary || book_.n_free_slots() > 0)) {
    book_.add_snapshot(cache, end, save);
  }
  return load;
}

}  // namespace sluice
