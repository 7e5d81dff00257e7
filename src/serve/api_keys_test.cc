#include "serve/api_keys.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

TEST(ApiKeys, AreFoundByTheirHeader) {
  const ApiKeys keys("first\n\n  second name=bob seats=2\r\n", "keys");
  EXPECT_TRUE(keys.required());
  EXPECT_EQ(keys.find("Bearer first")->name, "key-1");
  EXPECT_EQ(keys.find("Bearer first")->n_seats, -1);
  EXPECT_EQ(keys.find("bEaReR second")->name, "bob");
  EXPECT_EQ(keys.find("Bearer second")->n_seats, 2);
  for (const char* wrong : {"", "Bearer ", "first", "Bearer firs", "Bearer firstfirst",
                            "Bearer first ", "Basic first"}) {
    EXPECT_EQ(keys.find(wrong), nullptr) << wrong;
  }
  EXPECT_FALSE(ApiKeys().required());
}

TEST(ApiKeys, SayWhatIsWrong) {
  EXPECT_THROW(ApiKeys("\n \n", "keys"), Error);
  for (const char* line : {"k seats=-1", "k seats=x", "k seats=9999999", "k other", "k name="}) {
    EXPECT_THROW(ApiKeys(line, "keys"), Error) << line;
  }
}

TEST(ApiKeys, SeatsAreGivenBack) {
  std::atomic<int> count = 0;
  auto first = take_seat(count, 1);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(take_seat(count, 1), nullptr);
  EXPECT_NE(take_seat(count, -1), nullptr);
  EXPECT_EQ(count, 1);
  first = nullptr;
  EXPECT_EQ(count, 0);
  EXPECT_EQ(take_seat(count, 0), nullptr);
}

}  // namespace
}  // namespace sluice
