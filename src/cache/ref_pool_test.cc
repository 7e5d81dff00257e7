#include "cache/ref_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(RefPool, HandsOutEachNumberOnce) {
  RefPool pool(5);
  std::set<int32_t> taken;
  for (int i = 0; i < 5; ++i) taken.insert(pool.take());
  EXPECT_EQ(taken, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.take(), -1);
  EXPECT_EQ(pool.n_free(), 0);
}

TEST(RefPool, FreesAfterTheLastReference) {
  RefPool pool(1);
  const int32_t id = pool.take();
  pool.add_ref(id);
  pool.release(id);
  EXPECT_EQ(pool.refs(id), 1);
  EXPECT_EQ(pool.take(), -1);
  pool.release(id);
  EXPECT_EQ(pool.take(), id);
}

TEST(RefPool, RefusesWhatIsNotHeld) {
  RefPool pool(2);
  EXPECT_DEATH(pool.release(0), "check failed");
  EXPECT_DEATH(pool.add_ref(1), "check failed");
  EXPECT_DEATH(pool.release(2), "check failed");
  EXPECT_EQ(RefPool(0).take(), -1);
}

}  // namespace
}  // namespace sluice
