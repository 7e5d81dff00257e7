#include "cache/prefix_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace sluice {
namespace {

/// `n` pages of tokens; each page is filled with its entry of `words`.
std::vector<int32_t> text(const std::vector<int32_t>& words) {
  std::vector<int32_t> tokens;
  for (int32_t word : words) tokens.insert(tokens.end(), kPageTokens, word);
  return tokens;
}

class PrefixTreeTest : public testing::Test {
 protected:
  /// Takes pages for a text, puts them into the tree and lets go of them.
  std::vector<int32_t> add(const std::vector<int32_t>& words,
                           const std::vector<StateSnapshot>& snapshots = {}) {
    std::vector<int32_t> own(words.size());
    for (int32_t& page : own) page = pages.take();
    tree.insert(text(words), own, snapshots);
    for (int32_t page : own) pages.release(page);
    return own;
  }
  /// What is found for a text; gives it back.
  PrefixTree::Match find(const std::vector<int32_t>& words, bool needs_state = false,
                         int max_pages = 100) {
    PrefixTree::Match match = tree.match(text(words), max_pages, needs_state);
    for (int32_t page : match.pages) pages.release(page);
    if (match.state >= 0) slots.release(match.state);
    return match;
  }

  RefPool pages{20}, slots{6};
  PrefixTree tree{pages, slots, 3};
};

TEST_F(PrefixTreeTest, FindsTheLongestPrefix) {
  const auto first = add({1, 2, 3});
  const auto second = add({1, 2, 4, 5});
  EXPECT_EQ(tree.n_pages(), 5);
  EXPECT_EQ(find({1, 2, 3, 9}).pages, first);
  EXPECT_EQ(find({1, 2, 4, 5}).pages, second);
  EXPECT_EQ(second[1], first[1]);  // the same tokens, the same page
  EXPECT_EQ(find({1, 2, 7}).pages, (std::vector<int32_t>{first[0], first[1]}));
  EXPECT_TRUE(find({2, 1}).pages.empty());
  EXPECT_EQ(find({1, 2, 3}, false, 1).pages, (std::vector<int32_t>{first[0]}));
}

TEST_F(PrefixTreeTest, NeedsWholePages) {
  add({1, 2});
  auto tokens = text({1, 2});
  tokens.pop_back();
  EXPECT_EQ(tree.match(tokens, 100, false).pages.size(), 1u);
  tokens = text({1, 2});
  tokens[kPageTokens + 5] = 99;
  EXPECT_EQ(tree.match(tokens, 100, false).pages.size(), 1u);
}

TEST_F(PrefixTreeTest, AMatchHoldsItsPages) {
  add({1, 2});
  const PrefixTree::Match match = tree.match(text({1, 2}), 100, false);
  EXPECT_FALSE(tree.evict_page());
  for (int32_t page : match.pages) pages.release(page);
  EXPECT_TRUE(tree.evict_page());
  EXPECT_TRUE(tree.evict_page());
  EXPECT_FALSE(tree.evict_page());
  EXPECT_EQ(pages.n_free(), 20);
}

TEST_F(PrefixTreeTest, GivesUpTheLeastRecentlyUsedLeaf) {
  add({1, 2});
  add({3});
  add({4, 5});
  find({1, 2});
  ASSERT_TRUE(tree.evict_page());
  EXPECT_TRUE(find({3}).pages.empty());
  EXPECT_EQ(find({1, 2}).pages.size(), 2u);
  ASSERT_TRUE(tree.evict_page());
  EXPECT_EQ(find({4, 5}).pages.size(), 1u);
}

TEST_F(PrefixTreeTest, StatesBoundWhatCanBeReused) {
  const int32_t slot = slots.take();
  add({1, 2, 3}, {{2 * kPageTokens, slot}});
  slots.release(slot);
  const auto match = find({1, 2, 3}, true);
  EXPECT_EQ(match.pages.size(), 2u);
  EXPECT_EQ(match.state, slot);
  EXPECT_EQ(find({1, 2, 3}, false).pages.size(), 3u);
  EXPECT_TRUE(find({1, 2, 3}, true, 1).pages.empty());
  EXPECT_EQ(slots.n_free(), 5);
  EXPECT_TRUE(tree.evict_snapshot());
  EXPECT_EQ(slots.n_free(), 6);
  EXPECT_TRUE(find({1, 2, 3}, true).pages.empty());
  EXPECT_FALSE(tree.evict_snapshot());
}

TEST_F(PrefixTreeTest, KeepsABoundedNumberOfStates) {
  for (int32_t word = 1; word <= 5; ++word) {
    const int32_t slot = slots.take();
    add({word}, {{kPageTokens, slot}});
    slots.release(slot);
  }
  EXPECT_EQ(tree.n_snapshots(), 3);
  EXPECT_EQ(slots.n_free(), 3);
  EXPECT_TRUE(find({2}, true).pages.empty());
  EXPECT_EQ(find({3}, true).pages.size(), 1u);
}

TEST_F(PrefixTreeTest, AnEvictedPageTakesItsStateAlong) {
  const int32_t slot = slots.take();
  add({1}, {{kPageTokens, slot}});
  slots.release(slot);
  EXPECT_TRUE(tree.evict_page());
  EXPECT_EQ(slots.n_free(), 6);
}

TEST(PrefixTree, GivesEverythingBack) {
  RefPool pages(50), slots(4);
  {
    PrefixTree tree(pages, slots, 4);
    std::vector<int32_t> own;
    std::vector<int32_t> words;
    for (int i = 0; i < 40; ++i) {
      own.push_back(pages.take());
      words.push_back(i);
    }
    tree.insert(text(words), own, {});
    for (int32_t page : own) pages.release(page);
    EXPECT_EQ(pages.n_free(), 10);
  }
  EXPECT_EQ(pages.n_free(), 50);
}

TEST(PrefixTree, AgreesWithAListOfPrefixes) {
  std::mt19937 random(3);
  RefPool pages(24), slots(1);
  PrefixTree tree(pages, slots, 0);
  std::map<std::vector<int32_t>, int32_t> known;  // path of words -> page
  for (int round = 0; round < 3000; ++round) {
    std::vector<int32_t> words(1 + random() % 5);
    for (int32_t& word : words) word = static_cast<int32_t>(random() % 3);
    if (random() % 2) {
      std::vector<int32_t> own;
      for (size_t i = 0; i < words.size(); ++i) {
        int32_t page = pages.take();
        while (page < 0) {
          ASSERT_TRUE(tree.evict_page());
          page = pages.take();
        }
        own.push_back(page);
      }
      tree.insert(text(words), own, {});
      for (int32_t page : own) pages.release(page);
      // Eviction is the tree's choice: ask it what is left.
      for (size_t i = 1; i <= words.size(); ++i) {
        known[{words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i)}] = own[i - 1];
      }
    }
    const PrefixTree::Match match = tree.match(text(words), 100, false);
    for (size_t i = 0; i < match.pages.size(); ++i) {
      const std::vector<int32_t> path(words.begin(),
                                      words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      ASSERT_EQ(match.pages[i], known.at(path));
    }
    for (int32_t page : match.pages) pages.release(page);
    ASSERT_EQ(pages.n_free() + tree.n_pages(), 24);
  }
}

}  // namespace
}  // namespace sluice
