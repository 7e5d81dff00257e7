#include "kernels/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "kernels/cpu_turns.h"
namespace sluice {
namespace {

TEST(ThreadPool, CoversTheRangeOnceInUnitsOfTheGrain) {
  for (int n_threads : {1, 2, 3, 7}) {
    ThreadPool pool(n_threads);
    EXPECT_EQ(pool.size(), n_threads);
    for (int64_t n : {0, 1, 2, 3, 16, 17, 1000}) {
      for (int64_t grain : {1, 3, 16, 2000}) {
        std::vector<int> visits(size_t(n), 0);
        pool.parallel_for(n, grain, [&](int64_t first, int64_t last, int thread) {
          EXPECT_EQ(first % grain, 0);
          EXPECT_TRUE(last % grain == 0 || last == n);
          EXPECT_LT(first, last);
          EXPECT_LT(thread, n_threads);
          for (int64_t i = first; i < last; ++i) ++visits[size_t(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(size_t(n), 1)) << n_threads << " " << n << " " << grain;
      }
    }
  }
}

// What one loop writes, the next one reads: joins must order them.
TEST(ThreadPool, LoopsInARow) {
  ThreadPool pool(4);
  std::vector<int64_t> a(64, 1), b(64, 0);
  for (int round = 0; round < 3000; ++round) {
    pool.parallel_for(64, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) b[size_t(i)] = a[size_t(63 - i)] + 1;
    });
    pool.parallel_for(64, 5, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) a[size_t(i)] = b[size_t(i)];
    });
  }
  EXPECT_EQ(std::accumulate(a.begin(), a.end(), int64_t{0}), 64 * 3001);
}

TEST(ThreadPool, CountsJoins) {
  ThreadPool pool(2);
  const auto nothing = [](int64_t, int64_t, int) {};
  for (int i = 0; i < 10; ++i) pool.parallel_for(100, 10, nothing);
  EXPECT_EQ(pool.joins(), 10);
  EXPECT_GT(pool.sync_ns(), 0);
  pool.parallel_for(10, 10, nothing);  // one piece: no join
  EXPECT_EQ(pool.joins(), 10);

  ThreadPool alone(1);
  alone.parallel_for(100, 1, nothing);
  EXPECT_EQ(alone.joins(), 0);
}

TEST(ThreadPool, WakesFromSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> arrived{0};
    // Each piece waits for the others, so all three threads must come.
    pool.parallel_for(3, 1, [&](int64_t, int64_t, int) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 3);
  }
}

// The pieces of a thread that is stuck inside one are taken over by the others.
TEST(ThreadPool, TakesOverUnclaimedPieces) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  pool.parallel_for(100, 1, [&](int64_t first, int64_t, int) {
    if (first == 50) {  // the first piece of the second share
      while (done < 99) std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(done, 100);
}

// Only while somebody else was seen to use the CPU.
TEST(CpuTurns, EndWhileTheCpuIsShared) {
  CpuTurns turns(/*gap=*/10, /*memory=*/1000, /*length=*/50, /*now=*/0);
  for (int64_t now = 0; now <= 500; now += 10) EXPECT_FALSE(turns.over(now)) << now;
  EXPECT_FALSE(turns.over(520));  // others ran from 500 to 520; a turn begins
  for (int64_t now = 525; now <= 570; now += 5) EXPECT_FALSE(turns.over(now)) << now;
  EXPECT_TRUE(turns.over(571));
  turns.begin(575);  // nobody wanted the CPU
  EXPECT_FALSE(turns.over(580));
  int64_t now = 580;
  while (!turns.over(now)) now += 5;
  EXPECT_EQ(now, 630);  // but somebody may still be there
  turns.begin(700);     // and was
  for (now = 700; !turns.over(now); now += 5) EXPECT_LE(now, 755);
  // The last sign of others was at 700.
  turns.wake(1690);
  for (now = 1690; now <= 1800; now += 5) EXPECT_FALSE(turns.over(now)) << now;
}

TEST(ThreadPool, MoreThreadsThanCores) {
  ThreadPool pool(int(usable_cores().size()) * 3 + 1);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 200; ++round) {
    pool.parallel_for(64, 1, [&](int64_t first, int64_t, int) { sum += first; });
  }
  EXPECT_EQ(sum, 200 * 63 * 64 / 2);
}

cpu_set_t cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return set;
}

TEST(ThreadPool, PinsThreadsAndGivesTheCallerBackItsCores) {
  const int core = usable_cores().back();
  const cpu_set_t before = cores_of_this_thread();
  {
    ThreadPool pool(1, {core});
    const cpu_set_t pinned = cores_of_this_thread();
    EXPECT_EQ(CPU_COUNT(&pinned), 1);
    EXPECT_TRUE(CPU_ISSET(size_t(core), &pinned));
    EXPECT_NO_THROW(ThreadPool(1, {usable_cores().front()})) << "cores are not the pinned ones";
  }
  const cpu_set_t after = cores_of_this_thread();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ThreadPool, RefusesCoresThatItCannotUse) {
  EXPECT_THROW(ThreadPool(2, {0}), Error);
  EXPECT_THROW(ThreadPool(1, {-1}), Error);
  EXPECT_THROW(ThreadPool(1, {1 << 20}), Error);
}

TEST(ThreadPool, EndsWhileWorkersSpinOrSleep) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    pool.parallel_for(8, 1, [](int64_t, int64_t, int) {});
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace sluice
