#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    write_whole_file(path, [&](std::ostream& out) { out << text; });
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "files_test";
};

TEST_F(Files, AFailureLeavesWhatWasThere) {
  write(folder_ / "a", "old");
  EXPECT_THROW(write_whole_file(folder_ / "a",
                                [](std::ostream& out) {
                                  out << "half";
                                  throw std::runtime_error("no");
                                }),
               std::runtime_error);
  EXPECT_EQ(read(folder_ / "a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(write(folder_ / "none" / "a", "x"), Error);
}

TEST_F(Files, ALinkStaysALink) {
  write(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");
  fs::create_symlink("new", folder_ / "dangling");
  write(folder_ / "link", "text");
  write(folder_ / "dangling", "more");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "a"), "text");
  EXPECT_EQ(read(folder_ / "new"), "more");
}

TEST_F(Files, APipeIsWrittenInPlace) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read(pipe); });
  write(pipe, "text");
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Files, AFullDeviceIsAnError) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full";
  EXPECT_THROW(write("/dev/full", "text"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace sluice
