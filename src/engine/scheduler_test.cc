#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "base/error.h"

namespace sluice {
namespace {

/// A model that always says 7, or what the prompt repeats.
Result answer(const Batch& batch, Token token = 7) {
  Result result;
  result.batch = batch.id;
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (!batch.rows[i].wanted()) continue;
    RowResult& row = result.rows.emplace_back();
    row.row = static_cast<int32_t>(i);
    row.token = token;
  }
  return result;
}

Request request(int n_prompt, int max_tokens, int priority = 0) {
  Request r;
  // All different, so that there is nothing to look up.
  static Token next = 0;
  for (int i = 0; i < n_prompt; ++i) r.prompt.push_back(++next);
  r.max_tokens = max_tokens;
  r.priority = priority;
  r.speculate = false;
  return r;
}

const BatchSequence* rows_of(const Batch& batch, RequestId id) {
  for (const BatchSequence& sequence : batch.sequences) {
    if (sequence.id == id) return &sequence;
  }
  return nullptr;
}

int n_rows_of(const Batch& batch, RequestId id) {
  const BatchSequence* sequence = rows_of(batch, id);
  return sequence ? sequence->n_rows : 0;
}

Batch next_batch(Scheduler& scheduler) {
  Batch batch;
  scheduler.next(batch, 0);
  return batch;
}

std::vector<Emission> take_events(Scheduler& scheduler) {
  std::vector<Emission> events;
  scheduler.take_events(events);
  return events;
}

/// Computes `n` batches one after the other; the last one.
Batch step(Scheduler& scheduler, int n = 1) {
  Batch batch;
  for (int i = 0; i < n; ++i) {
    batch = next_batch(scheduler);
    if (!batch.empty()) scheduler.accept(answer(batch));
    take_events(scheduler);
  }
  return batch;
}

TEST(Scheduler, PromptsTakeTheWholeBudgetIfNobodyDecodes) {
  for (int n_slots : {0, 8}) {
    Scheduler scheduler({.chunk = 80}, {.n_pages = 100, .n_state_slots = n_slots}, 1);
    const RequestId a = scheduler.submit(request(200, 5), 0);
    // With states to keep, chunks end with a page.
    for (int wanted : n_slots ? std::vector{64, 64, 72} : std::vector{80, 80, 40}) {
      EXPECT_EQ(n_rows_of(step(scheduler), a), wanted);
    }
  }
}

TEST(Scheduler, DecodeGoesFirstAndAPromptBesideItGetsFewRows) {
  for (int n_slots : {0, 32}) {
    Scheduler scheduler({.chunk = 80}, {.n_pages = 100, .n_state_slots = n_slots}, 1);
    const RequestId a = scheduler.submit(request(10, 100), 0);
    step(scheduler);
    const RequestId b = scheduler.submit(request(40, 5), 0);
    for (int wanted : {16, 16, 8}) {
      const Batch batch = step(scheduler);
      EXPECT_EQ(batch.sequences.front().id, a);
      EXPECT_EQ(n_rows_of(batch, a), 1);
      EXPECT_EQ(n_rows_of(batch, b), wanted);
    }
    // Many who decode let more of it through.
    for (int i = 0; i < 10; ++i) scheduler.submit(request(1, 100), 0);
    step(scheduler, 2);
    const RequestId c = scheduler.submit(request(60, 5), 0);
    EXPECT_EQ(n_rows_of(step(scheduler), c), 24);  // two per row of a, b and the ten
  }
}

TEST(Scheduler, SaysWhenARequestLeftTheQueue) {
  Scheduler scheduler({.max_sequences = 1}, {.n_pages = 100}, 1);
  const RequestId ids[] = {scheduler.submit(request(3, 2), 0), scheduler.submit(request(3, 2), 0)};
  std::vector<double> admitted_us;
  for (double now_us = 70; !scheduler.idle(); now_us += 10) {
    Batch batch;
    scheduler.next(batch, now_us);
    scheduler.accept(answer(batch));
    for (const Emission& emission : take_events(scheduler)) {
      EXPECT_EQ(emission.event.request, ids[admitted_us.size() / 2]);
      admitted_us.push_back(emission.event.admitted_us);
    }
  }
  EXPECT_EQ(admitted_us, (std::vector<double>{70, 0, 90, 0}));  // with first events only
}

TEST(Scheduler, KeepsTheBudget) {
  Scheduler scheduler({.chunk = 5}, {.n_pages = 100}, 1);
  for (int i = 0; i < 9; ++i) scheduler.submit(request(3 + i, 12), 0);
  int n_batches = 0;
  while (!scheduler.idle()) {
    const Batch batch = step(scheduler);
    ASSERT_LE(batch.rows.size(), 5u);
    ASSERT_GE(batch.rows.size(), 1u);
    ASSERT_LT(++n_batches, 1000);
  }
  EXPECT_EQ(scheduler.stats().finished, 9u);
  EXPECT_EQ(scheduler.stats().generated_tokens, 9u * 12u);
}

TEST(Scheduler, NobodyWhoDecodesWaitsWhenThereAreMoreThanRows) {
  Scheduler scheduler({.chunk = 4}, {.n_pages = 100}, 1);
  std::vector<RequestId> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(scheduler.submit(request(1, 1000), 0));
  step(scheduler, 40);
  std::vector<int> n_rows(10);
  for (int i = 0; i < 50; ++i) {
    const Batch batch = step(scheduler);
    for (size_t s = 0; s < ids.size(); ++s) n_rows[s] += n_rows_of(batch, ids[s]);
  }
  const auto [least, most] = std::minmax_element(n_rows.begin(), n_rows.end());
  EXPECT_LE(*most - *least, 1);
}

TEST(Scheduler, EachBatchUnderWayTakesItsShare) {
  Scheduler scheduler({}, {.n_pages = 100}, 3);
  std::vector<RequestId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(scheduler.submit(request(1, 100), 0));
  std::deque<Batch> under_way;
  size_t n_rows = 0;
  for (int i = 0; i < 60; ++i) {
    while (under_way.size() < 3) {
      Batch batch = next_batch(scheduler);
      if (batch.empty()) break;
      under_way.push_back(std::move(batch));
    }
    if (i >= 30) {
      ASSERT_EQ(under_way.size(), 3u);
      ASSERT_LE(under_way.back().rows.size(), 3u);
      n_rows += under_way.front().rows.size();
      // Nobody is in two of them: its token is under way.
      for (RequestId id : ids) {
        int n = 0;
        for (const Batch& batch : under_way) n += n_rows_of(batch, id);
        ASSERT_LE(n, 1);
      }
    }
    scheduler.accept(answer(under_way.front()));
    under_way.pop_front();
  }
  EXPECT_GE(n_rows, 30u * 8 / 3 - 3);
}

TEST(Scheduler, ChunksOfOnePromptFollowEachOther) {
  Scheduler scheduler({}, {.n_pages = 100, .n_state_slots = 4}, 4);
  const RequestId a = scheduler.submit(request(400, 5), 0);
  std::vector<Batch> batches;
  int n_rows = 0;
  for (int i = 0; i < 4; ++i) {
    const Batch& batch = batches.emplace_back(next_batch(scheduler));
    const BatchSequence* rows = rows_of(batch, a);
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(batch.rows.front().position, n_rows);
    if (i > 0) {
      // Each goes on from the state the one before saved.
      EXPECT_EQ(rows->state_load, batches[static_cast<size_t>(i) - 1].rows.back().state_save);
    }
    n_rows += rows->n_rows;
  }
  EXPECT_EQ(n_rows, 400);
  EXPECT_TRUE(next_batch(scheduler).empty());
  for (const Batch& batch : batches) scheduler.accept(answer(batch));
  EXPECT_EQ(take_events(scheduler).size(), 1u);
}

TEST(Scheduler, PrioritiesAge) {
  const EngineOptions options{.max_sequences = 1, .ageing_us = 1000};
  for (double waited_us : {500.0, 1500.0}) {
    Scheduler scheduler(options, {.n_pages = 100}, 1);
    scheduler.submit(request(1, 5, 9), 0);
    step(scheduler);
    const RequestId low = scheduler.submit(request(1, 5, 0), 0);
    const RequestId high = scheduler.submit(request(1, 5, 1), waited_us);
    RequestId first = 0;
    while (first == 0) {
      const Batch batch = step(scheduler);
      if (rows_of(batch, low)) first = low;
      if (rows_of(batch, high)) first = high;
    }
    EXPECT_EQ(first, waited_us < 1000 ? high : low);
  }
}

TEST(Scheduler, NobodyStarvesUnderAStreamOfSoonerRequests) {
  Scheduler scheduler({.max_sequences = 2, .ageing_us = 1000}, {.n_pages = 100}, 1);
  const RequestId low = scheduler.submit(request(1, 3, 0), 0);
  for (int i = 0; i < 3; ++i) scheduler.submit(request(1, 50, 5), 0);
  bool served = false;
  for (int n = 0; n < 2000 && !served; ++n) {
    if (n % 10 == 0) scheduler.submit(request(1, 20, 5), n * 10.0);
    served = rows_of(step(scheduler), low) != nullptr;
  }
  EXPECT_TRUE(served);
}

TEST(Scheduler, TheNewestOfTheLowestPriorityGivesUpItsSpace) {
  Scheduler scheduler({.prefix_cache = false}, {.n_pages = 8}, 1);
  const RequestId low_old = scheduler.submit(request(30, 200, 0), 0);
  const RequestId low_new = scheduler.submit(request(30, 200, 0), 0);
  const RequestId high = scheduler.submit(request(30, 200, 1), 0);
  // Three sequences grow to nine pages.
  Batch batch;
  while (scheduler.stats().preemptions == 0) batch = step(scheduler);
  EXPECT_EQ(rows_of(batch, low_new), nullptr);
  EXPECT_NE(rows_of(batch, low_old), nullptr);
  EXPECT_NE(rows_of(batch, high), nullptr);
  int n_batches = 0;
  while (!scheduler.idle()) {
    step(scheduler);
    ASSERT_LT(++n_batches, 2000);
  }
  EXPECT_EQ(scheduler.stats().finished, 3u);
  EXPECT_EQ(scheduler.stats().generated_tokens, 600u);
}

TEST(Scheduler, AHigherPriorityTakesThePlaceOfALower) {
  Scheduler scheduler({.max_sequences = 1}, {.n_pages = 100}, 1);
  const RequestId low = scheduler.submit(request(40, 100, 0), 0);
  step(scheduler, 5);
  const RequestId high = scheduler.submit(request(4, 3, 2), 10);
  EXPECT_NE(rows_of(step(scheduler), high), nullptr);
  EXPECT_EQ(scheduler.stats().preemptions, 1u);
  step(scheduler, 2);
  const Batch resumed = step(scheduler);
  // 40 + 5 tokens, of which a full page was kept.
  EXPECT_EQ(n_rows_of(resumed, low), 13);
}

TEST(Scheduler, CancelFreesAtOnceOrWhenTheBatchIsBack) {
  for (int depth : {1, 2}) {
    Scheduler scheduler({.prefix_cache = false}, {.n_pages = 20, .n_state_slots = 3}, depth);
    const RequestId a = scheduler.submit(request(300, 5), 0);
    const Batch batch = next_batch(scheduler);
    const int n_free = scheduler.book().n_free_pages();
    EXPECT_TRUE(scheduler.cancel(a));
    EXPECT_FALSE(scheduler.cancel(a));
    EXPECT_EQ(scheduler.book().n_free_pages(), n_free);
    EXPECT_TRUE(next_batch(scheduler).empty());
    scheduler.accept(answer(batch));
    EXPECT_EQ(scheduler.book().n_free_pages(), 20);
    EXPECT_EQ(scheduler.book().n_free_slots(), 3);
    const auto events = take_events(scheduler);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].event.finish, FinishReason::kCancelled);
    EXPECT_TRUE(scheduler.idle());

    const RequestId b = scheduler.submit(request(30, 50), 0);
    step(scheduler, 3);
    EXPECT_TRUE(scheduler.cancel(b));
    EXPECT_EQ(scheduler.book().n_free_pages(), 20);
  }
}

TEST(Scheduler, ClosedItEndsWhatIsThereAndWhatComes) {
  Scheduler scheduler({.max_sequences = 1}, {.n_pages = 20}, 2);
  scheduler.submit(request(30, 50), 0);
  step(scheduler, 3);
  scheduler.submit(request(30, 50), 0);  // waits
  const Batch batch = next_batch(scheduler);
  take_events(scheduler);
  scheduler.close("enough");
  scheduler.submit(request(30, 50), 0);
  scheduler.submit(request(0, 50), 0);  // wrong, which does not matter any more
  const auto events = take_events(scheduler);
  ASSERT_EQ(events.size(), 4u);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].event.request, RequestId(i + 1));
    EXPECT_EQ(events[i].event.finish, FinishReason::kAborted);
    EXPECT_EQ(events[i].event.error, "enough");
  }
  scheduler.accept(answer(batch));
  EXPECT_TRUE(take_events(scheduler).empty());
  EXPECT_TRUE(scheduler.idle());
}

TEST(Scheduler, KeepsNothingOfARequestThatHasEnded) {
  Scheduler scheduler({.chunk = 80}, {.n_pages = 100}, 1);
  const auto held = std::make_shared<int>();
  Request r = request(20, 3);
  r.sink = [held](const TokenEvent&) { return true; };
  scheduler.submit(std::move(r), 0);
  step(scheduler, 3);  // the prompt, and two tokens
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Scheduler, AForkSharesPagesAndCopiesTheLast) {
  Scheduler scheduler({}, {.n_pages = 20, .n_state_slots = 6}, 1);
  const RequestId parent = scheduler.submit(request(40, 100), 0);
  step(scheduler, 3);
  const int n_free = scheduler.book().n_free_pages();
  const RequestId child = scheduler.fork(parent, request(1, 10), 0);
  EXPECT_EQ(scheduler.book().n_free_pages(), n_free);
  const Batch batch = step(scheduler);
  ASSERT_EQ(batch.page_copies.size(), 1u);
  const BatchSequence *p = rows_of(batch, parent), *c = rows_of(batch, child);
  ASSERT_NE(p, nullptr);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->n_rows, 1);
  EXPECT_EQ(p->pages[0], c->pages[0]);
  EXPECT_NE(p->pages[1], c->pages[1]);
  EXPECT_EQ(p->state_load, c->state_load);
  EXPECT_NE(batch.rows[static_cast<size_t>(p->first_row)].state_save,
            batch.rows[static_cast<size_t>(c->first_row)].state_save);
  EXPECT_TRUE(step(scheduler).page_copies.empty());
}

TEST(Scheduler, GuessesAreTrimmedToWhatWasDrawn) {
  Scheduler scheduler({}, {.n_pages = 20, .n_state_slots = 20}, 1);
  Request r;
  for (int i = 0; i < 10; ++i) {
    for (Token t : {1, 2, 3, 4, 5, 6}) r.prompt.push_back(t);
  }
  r.max_tokens = 50;
  const RequestId id = scheduler.submit(std::move(r), 0);
  Batch batch = next_batch(scheduler);
  scheduler.accept(answer(batch, 1));
  batch = next_batch(scheduler);
  const BatchSequence& s = *rows_of(batch, id);
  ASSERT_GT(s.n_rows, 3);
  std::vector<int32_t> slots;
  for (int i = 0; i < s.n_rows; ++i) {
    const BatchRow& row = batch.rows[static_cast<size_t>(i)];
    EXPECT_EQ(row.token, 1 + i % 6);
    EXPECT_TRUE(row.sample);
    slots.push_back(row.state_save);
  }
  // Draw 2, 3, then something else: one guess was right up to the third row.
  Result result = answer(batch, 9);
  result.rows[0].token = 2;
  result.rows[1].token = 3;
  scheduler.accept(result);
  const auto events = take_events(scheduler);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].event.token, 2);
  EXPECT_FALSE(events[1].event.drafted);
  EXPECT_EQ(events[2].event.token, 3);
  EXPECT_TRUE(events[2].event.drafted);
  EXPECT_EQ(events[3].event.token, 9);
  EXPECT_EQ(events[3].event.position, 63);
  batch = next_batch(scheduler);
  ASSERT_EQ(batch.rows.size(), 1u);
  EXPECT_EQ(batch.rows[0].token, 9);
  EXPECT_EQ(batch.rows[0].position, 63);
  EXPECT_EQ(batch.sequences[0].state_load, slots[2]);
  EXPECT_EQ(scheduler.stats().accepted[1], 1u);
  EXPECT_EQ(scheduler.stats().accepted[2], 0u);
  scheduler.accept(answer(batch));
  scheduler.cancel(id);
  scheduler.forget_prefixes();
  EXPECT_EQ(scheduler.book().n_free_slots(), 20);
  EXPECT_EQ(scheduler.book().n_free_pages(), 20);
}

TEST(SequenceList, KeepsSoonerOnesFirst) {
  Sequence late, soon, twin, stranger;
  late.key = 2;
  soon.key = twin.key = stranger.key = 1;
  soon.id = 1;
  twin.id = 2;
  stranger.id = 3;
  SequenceList list;
  for (Sequence* s : {&late, &twin, &soon}) list.insert(s);
  EXPECT_EQ(std::vector(list.begin(), list.end()), (std::vector{&soon, &twin, &late}));
  EXPECT_EQ(*list.rbegin(), &late);
  list.erase(&stranger);
  list.erase(&twin);
  EXPECT_EQ(std::vector(list.begin(), list.end()), (std::vector{&soon, &late}));
  EXPECT_EQ(list.size(), 2u);
}

TEST(Scheduler, RowsCarryWhatSamplingNeeds) {
  Scheduler scheduler({}, {.n_pages = 20}, 1);
  Request r = request(5, 10);
  r.sampling.repetition_penalty = 1.2f;
  r.min_tokens = 2;
  r.end_tokens = {7};
  scheduler.submit(r, 0);
  Batch batch = next_batch(scheduler);
  EXPECT_EQ(batch.sequences[0].history, r.prompt);
  EXPECT_EQ(batch.sequences[0].n_prompt, 5);
  ASSERT_EQ(batch.sequences[0].sampling->logit_bias.size(), 1u);
  EXPECT_EQ(batch.sequences[0].sampling->logit_bias[0].first, 7);
  scheduler.accept(answer(batch, 3));
  step(scheduler);  // draws 7 although it was biased away: it ends the answer all the same
  EXPECT_TRUE(scheduler.idle());
}

}  // namespace
}  // namespace sluice
