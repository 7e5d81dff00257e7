#include "cache/cache_book.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::vector<int32_t> tokens(int n, int32_t first = 0) {
  std::vector<int32_t> t(static_cast<size_t>(n));
  for (size_t i = 0; i < t.size(); ++i) t[i] = first + static_cast<int32_t>(i);
  return t;
}

TEST(CacheBook, ReservesAllOrNothing) {
  CacheBook book({.n_pages = 4});
  SequenceCache a, b;
  EXPECT_TRUE(book.reserve(a, 65, 1));
  EXPECT_EQ(a.pages.size(), 3u);
  EXPECT_FALSE(book.reserve(b, 33, 0));
  EXPECT_TRUE(b.pages.empty());
  EXPECT_FALSE(book.reserve(b, 32, 1));
  EXPECT_TRUE(book.reserve(b, 32, 0));
  EXPECT_FALSE(book.grow(a, 97));
  EXPECT_EQ(a.pages.size(), 3u);
  book.release(a);
  book.release(b);
  EXPECT_EQ(book.n_free_pages(), 4);
}

TEST(CacheBook, OldPrefixesMakeRoom) {
  CacheBook book({.n_pages = 4});
  SequenceCache a, b;
  ASSERT_TRUE(book.reserve(a, 100, 0));
  book.remember(tokens(100), 100, a);
  book.release(a);
  EXPECT_EQ(book.n_free_pages(), 1);
  EXPECT_EQ(book.tree().n_pages(), 3);
  ASSERT_EQ(book.attach(tokens(100), 64, b), 64);
  EXPECT_TRUE(book.reserve(b, 128, 0));
  EXPECT_EQ(book.tree().n_pages(), 2);
  book.release(b);
  book.forget();
  EXPECT_EQ(book.n_free_pages(), 4);
}

TEST(CacheBook, AForkCopiesThePageItWrites) {
  CacheBook book({.n_pages = 5});
  SequenceCache a;
  ASSERT_TRUE(book.reserve(a, 70, 0));
  SequenceCache b = book.fork(a, 40);
  EXPECT_EQ(b.pages, std::vector<int32_t>(a.pages.begin(), a.pages.begin() + 2));
  CopyOnWrite copy;
  // Whoever writes first copies, the other keeps the page.
  ASSERT_TRUE(book.own_page(a, 40, copy));
  EXPECT_EQ(copy.from, b.pages[1]);
  EXPECT_EQ(copy.to, a.pages[1]);
  ASSERT_TRUE(book.own_page(b, 40, copy));
  EXPECT_EQ(copy.from, -1);
  EXPECT_NE(a.pages[1], b.pages[1]);
  EXPECT_EQ(a.pages[0], b.pages[0]);
  // A page whose content nobody needs is not copied.
  SequenceCache c = book.fork(a, 40);
  ASSERT_TRUE(book.own_page(c, 32, copy));
  EXPECT_EQ(copy.from, -1);
  EXPECT_NE(c.pages[1], a.pages[1]);
  SequenceCache d = book.fork(a, 40);
  EXPECT_FALSE(book.own_page(d, 40, copy));
  for (SequenceCache* cache : {&a, &b, &c, &d}) book.release(*cache);
  EXPECT_EQ(book.n_free_pages(), 5);
}

TEST(CacheBook, TrimGivesBackWholePages) {
  CacheBook book({.n_pages = 5});
  SequenceCache a;
  ASSERT_TRUE(book.reserve(a, 130, 0));
  book.trim(a, 65);
  EXPECT_EQ(a.pages.size(), 3u);
  book.trim(a, 64);
  EXPECT_EQ(a.pages.size(), 2u);
  EXPECT_EQ(book.n_free_pages(), 3);
}

TEST(CacheBook, AStateThatIsSharedIsNotOverwritten) {
  CacheBook book({.n_pages = 4, .n_state_slots = 2});
  SequenceCache a;
  ASSERT_TRUE(book.reserve(a, 32, 0));
  int32_t loaded = -2;
  const int32_t first = book.advance_state(a, loaded);
  EXPECT_EQ(loaded, -1);
  ASSERT_TRUE(book.ensure_slot(a));
  EXPECT_EQ(book.advance_state(a, loaded), first);  // in place
  SequenceCache b = book.fork(a, 32);
  ASSERT_TRUE(book.ensure_slot(b));
  EXPECT_NE(book.advance_state(b, loaded), first);
  EXPECT_EQ(loaded, first);
  EXPECT_EQ(book.n_free_slots(), 0);
  // The slot that was loaded stays held until the batch is back.
  EXPECT_FALSE(book.ensure_slot(a));
  book.release_slot(loaded);
  EXPECT_TRUE(book.ensure_slot(a));
  book.release(a);
  book.release(b);
  EXPECT_EQ(book.n_free_slots(), 2);
}

TEST(CacheBook, SnapshotsYieldToTheLastSlot) {
  CacheBook book({.n_pages = 4, .n_state_slots = 1});
  SequenceCache a;
  ASSERT_TRUE(book.reserve(a, 64, 0));
  int32_t loaded = -1;
  const int32_t slot = book.advance_state(a, loaded);
  book.add_snapshot(a, 32, slot);
  EXPECT_TRUE(book.ensure_slot(a));
  EXPECT_TRUE(a.snapshots.empty());
  EXPECT_EQ(book.advance_state(a, loaded), slot);
  book.release(a);
  EXPECT_EQ(book.n_free_slots(), 1);
}

TEST(CacheBook, ARecurrentPrefixStartsFromItsSnapshot) {
  CacheBook book({.n_pages = 8, .n_state_slots = 4});
  SequenceCache a, b;
  ASSERT_TRUE(book.reserve(a, 96, 0));
  int32_t loaded = -1;
  const int32_t slot = book.advance_state(a, loaded);
  book.add_snapshot(a, 64, slot);
  book.remember(tokens(96), 96, a);
  book.release(a);
  EXPECT_EQ(book.attach(tokens(96), 95, b), 64);
  EXPECT_EQ(b.state, slot);
  book.release(b);
  EXPECT_EQ(book.attach(tokens(96), 63, b), 0);
  EXPECT_EQ(b.state, -1);
}

}  // namespace
}  // namespace sluice
