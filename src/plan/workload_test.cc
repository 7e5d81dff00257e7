#include "plan/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace sluice {
namespace {

std::string message_of(const std::string& trace) {
  try {
    Workload::from_trace(trace, "t.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Workload, ATraceIsReplayedAsRecorded) {
  Workload workload = Workload::from_trace(
      "\xEF\xBB\xBFsession,arrival_s,output_tokens,prompt_tokens\r\na,0.5,3,10\nb,1.5,4,20\n\na,1."
      "5,5,30\n",
      "t.csv");
  EXPECT_TRUE(workload.is_open());
  EXPECT_EQ(workload.longest(), 35);
  EXPECT_EQ(workload.next_us(), 0.5e6);
  const Arrival first = workload.take(), second = workload.take(), third = workload.take();
  EXPECT_EQ(first.prompt, 10);
  EXPECT_EQ(first.output, 3);
  EXPECT_EQ(second.time_us, 1.5e6);
  EXPECT_NE(second.session, first.session);
  EXPECT_EQ(third.session, first.session);
  EXPECT_TRUE(std::isinf(workload.next_us()));
}

TEST(Workload, WrongTracesNameLineAndColumn) {
  const std::string head = "arrival_s,prompt_tokens,output_tokens\n";
  EXPECT_NE(message_of("").find("expected a CSV"), std::string::npos);
  EXPECT_NE(message_of(head).find("at least one request"), std::string::npos);
  EXPECT_NE(message_of("arrival_s,prompt_tokens\n1,2\n").find("output_tokens"), std::string::npos);
  EXPECT_NE(message_of("arrival_s,arrival_s\n1,2\n").find("expected one column arrival_s"),
            std::string::npos);
  EXPECT_NE(message_of(head + "2,1,1\n1,1,1\n").find("line 3: arrival_s: expected at least"),
            std::string::npos);
  for (const char* cell : {"nan", "-1", "inf", "1e300", "", "1x", "0x10"}) {
    EXPECT_NE(message_of(head + cell + ",1,1\n").find("line 2: arrival_s: expected a number"),
              std::string::npos)
        << cell;
  }
  for (const char* cell : {"0", "-5", "1.5", "99999999999999999999", "nan"}) {
    EXPECT_NE(message_of(head + "0," + cell + ",1\n").find("line 2: prompt_tokens"),
              std::string::npos)
        << cell;
  }
  EXPECT_NE(message_of(head + "0,1\n").find("line 2: expected 3 cells, got 2"), std::string::npos);
}

TEST(Workload, PoissonArrivalsHaveTheirRateAndSpread) {
  WorkloadOptions options;
  options.requests = 20000;
  options.rate = 50;
  options.prompt = 400;
  options.spread = 0.5;
  Workload workload(options);
  double last = 0, gaps2 = 0, prompts = 0, prompts2 = 0;
  for (int i = 0; i < options.requests; ++i) {
    const Arrival a = workload.take();
    gaps2 += (a.time_us - last) * (a.time_us - last);
    prompts += a.prompt;
    prompts2 += double(a.prompt) * a.prompt;
    EXPECT_GE(a.time_us, last);
    last = a.time_us;
  }
  EXPECT_TRUE(std::isinf(workload.next_us()));
  const double n = options.requests, mean = last / n;
  EXPECT_NEAR(mean, 20e3, 600);
  EXPECT_NEAR(gaps2 / n / (mean * mean), 2, 0.1);  // exponential gaps
  EXPECT_NEAR(prompts / n, 400, 8);
  EXPECT_NEAR(std::sqrt(prompts2 / n - prompts * prompts / n / n), 200, 15);
}

TEST(Workload, ATurnContinuesTheSessionAfterThinking) {
  WorkloadOptions options;
  options.requests = 3;
  options.users = 1;
  options.turns = 2;
  options.prompt = 100;
  options.output = 10;
  options.turn_prompt = 7;
  options.think_us = 5;
  Workload workload(options);
  const Arrival first = workload.take();
  EXPECT_TRUE(std::isinf(workload.next_us()));
  workload.finished(first, 1000);
  const Arrival second = workload.take();
  EXPECT_EQ(second.time_us, 1005);
  EXPECT_EQ(second.prompt, 117);
  EXPECT_EQ(second.session, first.session);
  workload.finished(second, 2000);
  const Arrival third = workload.take();
  EXPECT_NE(third.session, first.session);
  EXPECT_EQ(third.prompt, 100);
  workload.finished(third, 3000);
  EXPECT_TRUE(std::isinf(workload.next_us()));
  EXPECT_EQ(workload.remaining(), 0);
}

TEST(Workload, OptionsOutOfRangeAreNamed) {
  const auto expect_named = [](const char* name, auto change) {
    WorkloadOptions options;
    change(options);
    try {
      Workload workload(options);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
    }
  };
  expect_named("rate", [](auto& o) { o.rate = std::nan(""); });
  expect_named("prompt", [](auto& o) { o.prompt = -1; });
  expect_named("output", [](auto& o) { o.output = 1e12; });
  expect_named("requests", [](auto& o) { o.requests = 0; });
  expect_named("think_us", [](auto& o) { o.think_us = HUGE_VAL; });
}

TEST(Workload, SessionsShareTheirFirstTokensOnly) {
  int n_equal = 0;
  for (int p = 0; p < 100; ++p) {
    EXPECT_EQ(synthetic_token(1, p, 100, 1000), synthetic_token(2, p, 100, 1000));
    n_equal += synthetic_token(1, 100 + p, 100, 1000) == synthetic_token(2, 100 + p, 100, 1000);
  }
  EXPECT_LT(n_equal, 5);
}

}  // namespace
}  // namespace sluice
