#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "base/error.h"
#include "engine/fake_executor.h"

namespace sluice {
namespace {

constexpr int kVocab = 23;

/// Token t may come next unless (t + sum of tokens so far) is divisible by 3.
class SumConstraint : public TokenConstraint {
 public:
  void allowed(std::vector<uint32_t>& bits) override {
    bits.assign(1, 0);
    for (int t = 0; t < kVocab; ++t) {
      if (fits(t)) bits[0] |= 1u << t;
    }
  }
  bool accept(Token token) override {
    if (!fits(token)) return false;
    tokens_.push_back(token);
    return true;
  }
  void rollback(int n) override { tokens_.resize(tokens_.size() - static_cast<size_t>(n)); }

 private:
  bool fits(Token token) const {
    int sum = token;
    for (Token t : tokens_) sum += t;
    return sum % 3 != 0;
  }
  std::vector<Token> tokens_;
};

struct Answer {
  std::vector<Token> tokens;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::kNone;
};

/// What a request's answer is by definition: one token after the other, nothing shared.
Answer plain_answer(const Request& request, int limit) {
  Answer answer;
  std::vector<Token> tokens = request.prompt;
  uint64_t hash = 0;
  for (Token token : tokens) hash = fake_mix(hash, uint64_t(token));
  SumConstraint constraint;
  Sampler sampler;
  while (std::ssize(answer.tokens) < request.max_tokens && std::ssize(tokens) < limit) {
    SamplingParams params = request.sampling;
    std::vector<uint32_t> mask;
    if (request.constraint) constraint.allowed(mask);
    if (std::ssize(answer.tokens) < request.min_tokens && !request.ignore_end) {
      for (Token end : request.end_tokens) params.logit_bias.push_back({end, -INFINITY});
    }
    std::string error;
    const auto logits = fake_logits(hash, tokens.back(), kVocab);
    const Token token =
        sampler.draw(logits, params, tokens, int(request.prompt.size()),
                     request.constraint ? &mask : nullptr, int(tokens.size()), error);
    EXPECT_EQ(error, "");
    tokens.push_back(token);
    answer.tokens.push_back(token);
    hash = fake_mix(hash, uint64_t(token));
    const auto& ends = request.end_tokens;
    if (!request.ignore_end && std::find(ends.begin(), ends.end(), token) != ends.end()) {
      answer.finish = FinishReason::kStop;
      return answer;
    }
    EXPECT_TRUE(!request.constraint || constraint.accept(token));
  }
  answer.finish = FinishReason::kLength;
  return answer;
}

/// A request with its expected and its received answer.
struct Client {
  Request request;
  RequestId id = 0;
  Answer got;
  std::string error;
  int n_cached = 0, n_drafted = 0;
  std::vector<float> prompt_logprobs, logits, hidden;
  int stop_after = -1;  // the sink returns false after so many tokens
  bool cancelled = false;
  std::function<void()> on_token;

  std::function<bool(const TokenEvent&)> sink() {
    return [this](const TokenEvent& event) {
      EXPECT_EQ(got.finish, FinishReason::kNone) << "an event after the last";
      EXPECT_FALSE(stop_after >= 0 && std::ssize(got.tokens) >= stop_after);
      EXPECT_EQ(event.request, id);
      if (!event.logits.empty()) {
        EXPECT_EQ(event.position * kVocab, std::ssize(logits));
        logits.insert(logits.end(), event.logits.begin(), event.logits.end());
      }
      if (!event.hidden.empty()) {
        EXPECT_EQ(event.position * kFakeDim, std::ssize(hidden));
        hidden.insert(hidden.end(), event.hidden.begin(), event.hidden.end());
      }
      if (event.token >= 0) {
        EXPECT_EQ(event.position, std::ssize(request.prompt) + std::ssize(got.tokens));
        got.tokens.push_back(event.token);
        n_drafted += event.drafted;
      }
      if (!event.prompt_logprobs.empty()) {
        EXPECT_TRUE(prompt_logprobs.empty());
        prompt_logprobs = event.prompt_logprobs;
      }
      n_cached += event.n_cached;
      got.finish = event.finish;
      error = event.error;
      if (event.token >= 0 && on_token) on_token();
      return !(stop_after >= 0 && std::ssize(got.tokens) >= stop_after);
    };
  }
};

void submit(Engine& engine, Client& client) {
  Request request = client.request;
  if (request.constraint) request.constraint = std::make_shared<SumConstraint>();
  request.sink = client.sink();
  client.id = engine.submit(std::move(request));
}

void run(Engine& engine, int max_steps = 100000) {
  for (int n = 0; engine.step(n * 1000.0); ++n) ASSERT_LT(n, max_steps) << "it never ends";
}

void expect_scores(const Client& client) {
  const Request& r = client.request;
  const auto n_prompt = std::ssize(r.prompt);
  if (client.got.finish == FinishReason::kError || client.cancelled) return;
  if (r.want_logits) {
    ASSERT_EQ(std::ssize(client.logits), n_prompt * kVocab);
  }
  if (r.want_hidden) {
    ASSERT_EQ(std::ssize(client.hidden), n_prompt * kFakeDim);
  }
  const std::ptrdiff_t first = std::max(r.score_from, 1);
  ASSERT_EQ(std::ssize(client.prompt_logprobs),
            r.score_from < 0 ? 0 : std::max<std::ptrdiff_t>(n_prompt - first, 0));
  uint64_t hash = 0;
  Batch batch;
  batch.rows.resize(1);
  batch.sequences.resize(1);
  batch.sequences[0].sampling = std::make_shared<SamplingParams>();
  for (std::ptrdiff_t i = 0; i < n_prompt; ++i) {
    const Token token = r.prompt[size_t(i)];
    hash = fake_mix(hash, uint64_t(token));
    const auto logits = fake_logits(hash, token, kVocab);
    if (r.want_logits) {
      ASSERT_TRUE(std::equal(logits.begin(), logits.end(), client.logits.begin() + i * kVocab));
    }
    if (r.want_hidden) {
      const auto hidden = fake_hidden(hash, token);
      ASSERT_TRUE(std::equal(hidden.begin(), hidden.end(), client.hidden.begin() + i * kFakeDim));
    }
    if (r.score_from >= 0 && i + 1 >= first && i + 1 < n_prompt) {
      batch.rows[0].target = r.prompt[size_t(i) + 1];
      ASSERT_EQ(Sampler().run(batch, 0, logits).target_logprob,
                client.prompt_logprobs[size_t(i + 1 - first)]);
    }
  }
}

void expect_answer(const Client& client, int limit) {
  const Answer wanted = plain_answer(client.request, limit);
  expect_scores(client);
  if (client.stop_after >= 0 || client.cancelled) {
    ASSERT_LE(client.got.tokens.size(), wanted.tokens.size());
    EXPECT_TRUE(
        std::equal(client.got.tokens.begin(), client.got.tokens.end(), wanted.tokens.begin()));
    return;
  }
  EXPECT_EQ(client.got.tokens, wanted.tokens);
  EXPECT_EQ(client.got.finish, wanted.finish) << client.error;
}

void expect_nothing_lost(Engine& engine) {
  engine.forget_prefixes();
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.n_free_pages, stats.n_pages);
  EXPECT_EQ(stats.n_free_slots, stats.n_slots);
  EXPECT_EQ(stats.n_running, 0);
  EXPECT_EQ(stats.n_waiting, 0);
}

std::vector<Token> some_tokens(std::mt19937_64& random, size_t n) {
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random() % kVocab);
  return tokens;
}

Request simple_request(std::vector<Token> prompt, int max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

// ---- One request, one answer ----

struct World {
  explicit World(uint64_t seed) : random(seed) {
    auto one_of = [&](std::initializer_list<int> values) {
      return values.begin()[random() % values.size()];
    };
    options.chunk = one_of({1, 3, 16, 40, 64, 200});
    options.max_sequences = one_of({1, 2, 4, 16});
    options.speculation = random() % 2 ? Speculation::kNgram : Speculation::kOff;
    options.max_draft = one_of({1, 4, 15});
    options.prefix_cache = random() % 3 != 0;
    options.vocab_size = kVocab;
    pools.n_pages = one_of({6, 8, 12, 40});
    pools.n_state_slots = random() % 2 ? 0 : one_of({1, 2, 3, 8, 40});
    depth = one_of({1, 1, 2, 3, 4});
    limit = pools.n_pages * kPageTokens;
    prefix = some_tokens(random, 130);
  }

  Request random_request() {
    Request r;
    const size_t n_shared = random() % 2 ? random() % (prefix.size() + 1) : 0;
    r.prompt.assign(prefix.begin(), prefix.begin() + std::ptrdiff_t(n_shared));
    for (Token token : some_tokens(random, 1 + random() % 30)) r.prompt.push_back(token);
    r.max_tokens = random() % 10 == 0 ? 0 : int(random() % 90);
    r.sampling.temperature = random() % 2 ? 0.0f : 1.0f;
    r.sampling.seed = random() % 5;
    if (random() % 4 == 0) r.sampling.repetition_penalty = 1.3f;
    if (random() % 4 == 0) r.sampling.frequency_penalty = 0.4f;
    if (random() % 4 == 0) r.sampling.top_p = 0.8f;
    if (random() % 4 == 0) r.constraint = std::make_shared<SumConstraint>();
    if (random() % 3 == 0) r.end_tokens = {4, 9};
    if (random() % 3 == 0 && !r.constraint) r.min_tokens = int(random() % 20);
    r.ignore_end = random() % 4 == 0;
    r.priority = int(random() % 3);
    r.use_prefix_cache = random() % 5 != 0;
    r.speculate = random() % 5 != 0;
    if (random() % 5 == 0) r.score_from = int(random() % 160);
    r.want_logits = random() % 8 == 0;
    r.want_hidden = random() % 8 == 0;
    return r;
  }

  std::mt19937_64 random;
  EngineOptions options;
  CachePools pools;
  int depth = 1;
  int limit = 0;
  std::vector<Token> prefix;
};

void play(uint64_t seed) {
  World w(seed);
  FakeExecutor executor(w.pools, w.depth, kVocab, seed);
  Engine engine(executor, w.options);
  std::vector<std::unique_ptr<Client>> clients;
  const size_t n_clients = 3 + w.random() % 14;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 100000) << "it never ends";
    if (clients.size() < n_clients && w.random() % 3 == 0) {
      Client& client = *clients.emplace_back(std::make_unique<Client>());
      client.request = w.random_request();
      const size_t parent = w.random() % clients.size();
      if (w.random() % 4 == 0 && parent + 1 < clients.size() &&
          clients[parent]->got.finish == FinishReason::kNone && clients[parent]->stop_after < 0 &&
          !clients[parent]->cancelled) {
        const Client& p = *clients[parent];
        client.request.prompt = p.request.prompt;
        client.request.prompt.insert(client.request.prompt.end(), p.got.tokens.begin(),
                                     p.got.tokens.end());
        Request request = client.request;
        if (request.constraint) request.constraint = std::make_shared<SumConstraint>();
        request.prompt.clear();
        request.sink = client.sink();
        client.id = engine.fork(p.id, std::move(request));
      } else {
        if (w.random() % 8 == 0) client.stop_after = 1 + int(w.random() % 9);
        submit(engine, client);
      }
    }
    if (!clients.empty() && w.random() % 40 == 0) {
      Client& client = *clients[w.random() % clients.size()];
      if (engine.cancel(client.id)) client.cancelled = true;
    }
    if (!engine.step(n * 1000.0) && clients.size() == n_clients) break;
  }
  const int room = w.limit;
  for (const auto& client : clients) {
    SCOPED_TRACE(client->id);
    const bool fits = std::ssize(client->request.prompt) + (client->request.max_tokens > 0) <= room;
    if (!fits) {
      EXPECT_EQ(client->got.finish, FinishReason::kError);
    } else {
      expect_answer(*client, room);
    }
  }
  EXPECT_LE(executor.n_max_rows, w.options.chunk);
  for (const std::string& error : executor.errors) ADD_FAILURE() << error;
  expect_nothing_lost(engine);
}

TEST(EngineProperty, OneRequestOneAnswer) {
  const char* asked = std::getenv("SLUICE_PROPERTY_ROUNDS");
  const uint64_t n_rounds = asked ? std::strtoull(asked, nullptr, 10) : 400;
  for (uint64_t seed = 0; seed < n_rounds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    play(seed);
    if (testing::Test::HasFailure()) break;
  }
}

// ---- One property at a time ----

TEST(Engine, TakesAPrefixFromTheCache) {
  for (int n_slots : {0, 8}) {
    FakeExecutor executor({.n_pages = 40, .n_state_slots = n_slots}, 1, kVocab);
    Engine engine(executor, {});
    std::mt19937_64 random(5);
    Client first, again, longer;
    first.request = simple_request(some_tokens(random, 100), 50);
    submit(engine, first);
    run(engine);
    again.request = first.request;
    submit(engine, again);
    run(engine);
    // The next turn of a conversation.
    longer.request = first.request;
    longer.request.prompt.insert(longer.request.prompt.end(), first.got.tokens.begin(),
                                 first.got.tokens.end());
    submit(engine, longer);
    run(engine);
    EXPECT_EQ(first.n_cached, 0);
    EXPECT_EQ(again.n_cached, 96);
    EXPECT_EQ(longer.n_cached, 128);
    for (const Client* client : {&first, &again, &longer}) expect_answer(*client, 40 * 32);
    expect_nothing_lost(engine);
  }
}

TEST(Engine, ComputesTheLastTokenOfAKnownPrompt) {
  FakeExecutor executor({.n_pages = 40}, 1, kVocab);
  Engine engine(executor, {});
  std::mt19937_64 random(5);
  Client first, again;
  first.request = again.request = simple_request(some_tokens(random, 64), 3);
  submit(engine, first);
  run(engine);
  submit(engine, again);
  run(engine);
  EXPECT_EQ(again.n_cached, 32);
  expect_answer(again, 40 * 32);
}

TEST(Engine, GuessesSaveBatchesAndChangeNothing) {
  std::mt19937_64 random(6);
  uint64_t n_batches[2];
  for (Speculation speculation : {Speculation::kOff, Speculation::kNgram}) {
    FakeExecutor executor({.n_pages = 40, .n_state_slots = 40}, 1, kVocab);
    Engine engine(executor, {.speculation = speculation});
    Client client;
    // The first hash that is not a multiple of 7 sets off a cycle of at most 22 tokens.
    client.request = simple_request({1, 2, 3, 4, 5, 6}, 300);
    submit(engine, client);
    run(engine);
    expect_answer(client, 40 * 32);
    const EngineStats stats = engine.stats();
    n_batches[speculation == Speculation::kNgram] = stats.batches;
    EXPECT_EQ(stats.generated_tokens, 300u);
    if (speculation == Speculation::kOff) continue;
    EXPECT_GT(client.n_drafted, 100);
    EXPECT_GE(stats.drafted[0], stats.accepted[0]);
    EXPECT_GT(stats.accepted[0], 0u);
  }
  EXPECT_EQ(n_batches[0], 300u);
  EXPECT_LT(n_batches[1], 200u);
}

TEST(Engine, AFailedBatchFailsOnlyItsSequences) {
  for (int depth : {1, 3}) {
    FakeExecutor executor({.n_pages = 60, .n_state_slots = 20}, depth, kVocab);
    Engine engine(executor, {.chunk = 8, .max_sequences = 3});
    std::mt19937_64 random(7);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 6; ++i) {
      Client& client = *clients.emplace_back(std::make_unique<Client>());
      client.request = simple_request(some_tokens(random, 40), 40);
      submit(engine, client);
    }
    std::set<RequestId> hit;
    int n = 0;
    executor.fails = [&](const Batch& batch) {
      if (++n != 25) return false;
      for (const BatchSequence& sequence : batch.sequences) hit.insert(sequence.id);
      return true;
    };
    run(engine);
    int n_failed = 0;
    for (const auto& client : clients) {
      if (client->got.finish == FinishReason::kError) {
        EXPECT_TRUE(hit.count(client->id));
        EXPECT_EQ(client->error, "stage 1: out of order");
        ++n_failed;
      } else {
        expect_answer(*client, 60 * 32);
      }
    }
    EXPECT_GT(n_failed, 0);
    EXPECT_LT(n_failed, 6);
    EXPECT_EQ(engine.stats().failed, static_cast<uint64_t>(n_failed));
    expect_nothing_lost(engine);
  }
}

TEST(Engine, RefusesWhatCannotBeServed) {
  FakeExecutor executor({.n_pages = 4}, 1, kVocab);
  Engine engine(executor, {.max_context = 100, .vocab_size = kVocab});
  auto error_of = [&](const Request& request) {
    Client client;
    client.request = request;
    submit(engine, client);
    run(engine);
    EXPECT_TRUE(client.got.tokens.empty());
    return client.error;
  };
  EXPECT_EQ(error_of(simple_request({}, 5)), "prompt: expected at least one token, got none");
  EXPECT_EQ(error_of(simple_request({1, kVocab}, 5)), "prompt: token 1: expected 0 to 22, got 23");
  EXPECT_EQ(error_of(simple_request({1, -1}, 5)), "prompt: token 1: expected 0 to 22, got -1");
  EXPECT_EQ(error_of(simple_request(std::vector<Token>(100, 1), 5)),
            "prompt: expected at most 99 tokens (the context holds 100), got 100");
  EXPECT_EQ(error_of(simple_request({1}, -2)), "max_tokens: expected 0 or more, got -2");
  Request request = simple_request({1}, 2);
  request.sampling.temperature = NAN;
  EXPECT_EQ(error_of(request), "temperature: expected 0 to 1e6, got nan");
  request = simple_request({1}, 2);
  request.sampling.logit_bias = {{3, NAN}};
  EXPECT_EQ(error_of(request), "logit_bias of token 3: expected at most 1e30, got nan");
  EXPECT_EQ(engine.stats().failed, 7u);

  Client whole, last;
  whole.request = simple_request(std::vector<Token>(100, 1), 0);
  last.request = simple_request(std::vector<Token>(99, 1), 50);
  submit(engine, whole);
  submit(engine, last);
  run(engine);
  EXPECT_EQ(whole.got.finish, FinishReason::kLength);
  EXPECT_EQ(last.got.tokens.size(), 1u);
  EXPECT_EQ(last.got.finish, FinishReason::kLength);
}

TEST(Engine, RefusesBadOptions) {
  FakeExecutor executor({.n_pages = 4}, 1, kVocab);
  EXPECT_THROW(Engine(executor, {.chunk = 0}), Error);
  EXPECT_THROW(Engine(executor, {.max_sequences = 0}), Error);
  EXPECT_THROW(Engine(executor, {.ageing_us = 0}), Error);
  FakeExecutor none({.n_pages = 0}, 1, kVocab);
  EXPECT_THROW(Engine(none, {}), Error);
}

TEST(Engine, ASinkThatThrowsOrStopsHearsNoMore) {
  FakeExecutor executor({.n_pages = 20}, 1, kVocab);
  Engine engine(executor, {});
  Client stops, other;
  stops.request = other.request = simple_request({1, 2, 3}, 30);
  stops.stop_after = 4;
  int n_calls = 0;
  Request throws = simple_request({4, 5}, 30);
  throws.sink = [&](const TokenEvent&) -> bool {
    ++n_calls;
    throw std::runtime_error("gone");
  };
  engine.submit(throws);
  submit(engine, stops);
  submit(engine, other);
  run(engine);
  EXPECT_EQ(n_calls, 1);
  EXPECT_EQ(stops.got.tokens.size(), 4u);
  expect_answer(other, 20 * 32);
  EXPECT_EQ(engine.stats().cancelled, 2u);
  expect_nothing_lost(engine);
}

TEST(Engine, ASinkMaySubmitForkAndCancel) {
  FakeExecutor executor({.n_pages = 30, .n_state_slots = 10}, 2, kVocab);
  Engine engine(executor, {});
  Client parent, forked, added, victim;
  parent.request = simple_request({1, 2, 3}, 40);
  added.request = simple_request({7}, 5);
  victim.request = simple_request({9, 9}, 500);
  parent.on_token = [&] {
    if (parent.got.tokens.size() == 8) {
      submit(engine, added);
      forked.request = simple_request(parent.request.prompt, 30);
      forked.request.sampling.temperature = 1;
      forked.request.prompt.insert(forked.request.prompt.end(), parent.got.tokens.begin(),
                                   parent.got.tokens.end());
      Request request = forked.request;
      request.sink = forked.sink();
      forked.id = engine.fork(parent.id, std::move(request));
    }
    if (parent.got.tokens.size() == 20) victim.cancelled = engine.cancel(victim.id);
  };
  submit(engine, parent);
  submit(engine, victim);
  run(engine);
  for (const Client* client : {&parent, &added}) expect_answer(*client, 30 * 32);
  // With guesses several tokens arrive at once: the fork starts from all the engine knows.
  EXPECT_EQ(forked.got.finish, FinishReason::kLength);
  EXPECT_TRUE(victim.cancelled);
  EXPECT_EQ(victim.got.finish, FinishReason::kCancelled);
  EXPECT_THROW(engine.fork(parent.id, simple_request({1}, 1)), Error);
  EXPECT_FALSE(engine.cancel(parent.id));
  expect_nothing_lost(engine);
}

TEST(Engine, LogitsThatAreNotFiniteFailOneSequence) {
  class NanExecutor : public FakeExecutor {
   public:
    using FakeExecutor::FakeExecutor;
    void next(Result& result) override {
      FakeExecutor::next(result);
      for (RowResult& row : result.rows) {
        if (row.token == 13) row = {.row = row.row, .top = {}, .error = "logits are not finite"};
      }
    }
  };
  NanExecutor executor({.n_pages = 30}, 1, kVocab);
  Engine engine(executor, {});
  std::vector<std::unique_ptr<Client>> clients;
  for (Token t = 0; t < 8; ++t) {
    Client& client = *clients.emplace_back(std::make_unique<Client>());
    client.request = simple_request({t}, 9);
    submit(engine, client);
  }
  run(engine);
  int n_failed = 0;
  for (const auto& client : clients) {
    const Answer wanted = plain_answer(client->request, 30 * 32);
    const auto bad = std::find(wanted.tokens.begin(), wanted.tokens.end(), 13);
    EXPECT_EQ(client->got.tokens, std::vector<Token>(wanted.tokens.begin(), bad));
    if (bad == wanted.tokens.end()) continue;
    ++n_failed;
    EXPECT_EQ(client->error, "logits are not finite");
  }
  EXPECT_GT(n_failed, 0);
  EXPECT_LT(n_failed, 8);
  expect_nothing_lost(engine);
}

TEST(Engine, AConstraintThatThrowsFailsItsSequence) {
  class Broken : public TokenConstraint {
   public:
    void allowed(std::vector<uint32_t>& bits) override {
      if (++n_ == 4) throw Error(ErrorCode::kResource, "grammar: too deep");
      bits.assign(1, ~0u);
    }
    bool accept(Token) override { return true; }
    void rollback(int) override {}

   private:
    int n_ = 0;
  };
  FakeExecutor executor({.n_pages = 30}, 1, kVocab);
  Engine engine(executor, {});
  Client broken, other;
  broken.request = other.request = simple_request({1, 2}, 20);
  Request request = broken.request;
  request.constraint = std::make_shared<Broken>();
  request.sink = broken.sink();
  broken.id = engine.submit(std::move(request));
  submit(engine, other);
  run(engine);
  EXPECT_EQ(broken.error, "grammar: too deep");
  expect_answer(other, 30 * 32);
  expect_nothing_lost(engine);
}

}  // namespace
}  // namespace sluice
