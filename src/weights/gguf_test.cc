#include "weights/gguf.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "weights/gguf_builder.h"
#include "weights/mapped_file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

/// The message with which a file is refused; empty when it is accepted.
std::string error(std::span<const std::byte> bytes) {
  try {
    GgufFile(bytes, "x.gguf");
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

std::string error(const GgufBuilder& builder) { return error(builder.bytes()); }

testing::AssertionResult mentions(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not mention \"" << part << "\"";
}

TEST(Gguf, ReadsEveryValueType) {
  GgufBuilder b;
  b.header(0, 12);
  b.key("u8", GgufType::kU8).put(uint8_t(200)).key("i8", GgufType::kI8).put(int8_t(-3));
  b.key("u16", GgufType::kU16).put(uint16_t(60000)).key("i16", GgufType::kI16).put(int16_t(-300));
  b.key("u32", GgufType::kU32).put(uint32_t(1) << 31).key("i32", GgufType::kI32).put(-70000);
  b.key("f32", GgufType::kF32).put(0.22f).key("bool", GgufType::kBool).put(uint8_t(1));
  b.text("string", "h\xC3\xA9").key("u64", GgufType::kU64).put(uint64_t(1) << 63);
  b.key("i64", GgufType::kI64).put(std::numeric_limits<int64_t>::min());
  b.key("f64", GgufType::kF64).put(0.1);
  const GgufFile file(b.bytes(), "x.gguf");
  EXPECT_EQ(file.integer("u8"), 200);
  EXPECT_EQ(file.integer("i8"), -3);
  EXPECT_EQ(file.integer("u16"), 60000);
  EXPECT_EQ(file.integer("i16"), -300);
  EXPECT_EQ(file.integer("u32"), int64_t(1) << 31);
  EXPECT_EQ(file.integer("i32"), -70000);
  EXPECT_EQ(file.integer("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(file.number("f32"), 0.22);
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.number("u8", 1.0), 200.0);
  EXPECT_TRUE(file.boolean("bool", false));
  EXPECT_EQ(file.text("string"), "h\xC3\xA9");
  EXPECT_THROW(file.integer("u64"), Error);
  EXPECT_EQ(file.metadata().size(), 12u);
  EXPECT_EQ(gguf_value_text(*file.find("u64")), "9223372036854775808");
  EXPECT_EQ(gguf_value_text(*file.find("string"), 2), "\"h...\"");
  EXPECT_EQ(file.number("u64"), 0x1p63);
}

TEST(Gguf, TypedLookupsRefuseOtherTypes) {
  GgufBuilder b;
  b.header(0, 2).text("name", "x").array("list", GgufType::kU8, 1).put(uint8_t(1));
  const GgufFile file(b.bytes(), "x.gguf");
  EXPECT_THROW(file.integer("name"), Error);
  EXPECT_THROW(file.integer("name", 1), Error);
  EXPECT_THROW(file.number("list"), Error);
  EXPECT_THROW(file.boolean("name", true), Error);
  EXPECT_THROW(file.text("list"), Error);
  EXPECT_THROW(file.texts("list"), Error);
  EXPECT_THROW(file.integers("name"), Error);
  EXPECT_THROW(file.numbers("name"), Error);
  EXPECT_THROW(file.integer("absent"), Error);
  EXPECT_EQ(file.integer("absent", 7), 7);
  EXPECT_EQ(file.text("absent", "?"), "?");
  EXPECT_TRUE(file.texts("absent").empty());
  EXPECT_EQ(file.find("absent"), nullptr);
  try {
    file.integer("name");
  } catch (const Error& e) {
    EXPECT_TRUE(mentions(e.what(), "x.gguf: name: expected an integer, got \"x\" (string)"));
  }
}

TEST(Gguf, ReadsArrays) {
  GgufBuilder b;
  b.header(0, 5);
  b.array("texts", GgufType::kString, 3).put_string("a").put_string("").put_string("ccc");
  b.array("integers", GgufType::kI32, 2).put(int32_t(-1)).put(int32_t(5));
  b.array("numbers", GgufType::kF32, 2).put(0.5f).put(1e-5f);
  b.array("booleans", GgufType::kBool, 2).put(uint8_t(1)).put(uint8_t(0));
  b.array("nested", GgufType::kArray, 2);
  for (int i = 0; i < 2; ++i) b.put(uint32_t(GgufType::kU8)).put(uint64_t(1)).put(uint8_t(9));
  const GgufFile file(b.bytes(), "x.gguf");
  EXPECT_EQ(file.texts("texts"), (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(file.integers("integers"), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(file.numbers("numbers"), (std::vector<double>{0.5, 1e-5}));
  EXPECT_EQ(file.integers("booleans"), (std::vector<int64_t>{1, 0}));
  EXPECT_THROW(file.integers("nested"), Error);
  EXPECT_EQ(gguf_value_text(*file.find("texts")), "[\"a\", \"\", \"ccc\"]");
  EXPECT_EQ(gguf_value_text(*file.find("integers"), 3), "[-1, ...] (2)");
  EXPECT_EQ(gguf_value_text(*file.find("nested")), "[2 arrays]");
}

TEST(Gguf, ValueTextIsSafeToPrint) {
  GgufBuilder b;
  b.header(0, 1).text("k", "a\n\x1B[2J\x7F");
  EXPECT_EQ(gguf_value_text(*GgufFile(b.bytes(), "x").find("k")), "\"a\\n\\x1b[2J\\x7f\"");
}

TEST(Gguf, ReadsTensors) {
  GgufBuilder b;
  b.header(3, 0);
  b.tensor("a", {32, 3}, DType::kQ4_0, 0).tensor("b", {2}, DType::kF32, 64);
  b.tensor("empty", {0, 5}, DType::kF32, 0).data(72);
  const GgufFile file(b.bytes(), "x.gguf");
  const TensorView& a = *file.tensor("a");
  EXPECT_EQ(a.shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(a.bytes, 54u);
  EXPECT_EQ(a.elements(), 96);
  EXPECT_EQ(*file.tensor("b")->data, std::byte{64});
  EXPECT_EQ(file.tensor("empty")->bytes, 0u);
  EXPECT_EQ(file.tensor("c"), nullptr);
}

TEST(Gguf, UsesTheAlignmentOfTheFile) {
  GgufBuilder b;
  b.header(1, 1).key("general.alignment", GgufType::kU32).put(uint32_t(4096));
  b.tensor("a", {4}, DType::kF32, 4096).data(4096 + 16, 4096);
  const GgufFile file(b.bytes(), "x.gguf");
  EXPECT_EQ(file.tensor("a")->data - b.bytes().data(), 8192);
  for (const uint32_t wrong : {0u, 3u, 1u << 31}) {
    GgufBuilder c;
    c.header(0, 1).key("general.alignment", GgufType::kU32).put(wrong);
    EXPECT_TRUE(mentions(error(c), "expected a power of two"));
  }
}

TEST(Gguf, EveryTruncationIsRefused) {
  GgufBuilder b;
  b.header(1, 3).text("general.architecture", "llama");
  b.array("texts", GgufType::kString, 2).put_string("ab").put_string("c");
  b.key("n", GgufType::kU64).put(uint64_t(1));
  b.tensor("a", {4}, DType::kF32, 0).data(16);
  EXPECT_EQ(error(b), "");
  for (size_t n = 0; n < b.bytes().size(); ++n) {
    // A copy of the exact size, so that a sanitizer sees a read behind the end.
    const std::vector<std::byte> cut(b.bytes().begin(), b.bytes().begin() + std::ptrdiff_t(n));
    EXPECT_NE(error(cut), "") << n;
  }
}

TEST(Gguf, HugeCountsFailAtOnce) {
  constexpr uint64_t kHuge[] = {1000, uint64_t(1) << 32, uint64_t(1) << 60, uint64_t(1) << 61,
                                ~uint64_t(0)};
  for (const uint64_t n : kHuge) {
    EXPECT_TRUE(mentions(error(GgufBuilder().header(n, 0)), "tensor count"));
    EXPECT_TRUE(mentions(error(GgufBuilder().header(0, n)), "metadata count"));
    for (const GgufType type :
         {GgufType::kU8, GgufType::kU64, GgufType::kString, GgufType::kArray}) {
      EXPECT_TRUE(
          mentions(error(GgufBuilder().header(0, 1).array("k", type, n).put(n)), "do not fit"));
    }
    EXPECT_NE(error(GgufBuilder().header(0, 1).put(n).put(n)), "");  // a key of that length
    EXPECT_NE(error(GgufBuilder().header(0, 1).key("k", GgufType::kString).put(n)), "");
    EXPECT_NE(error(GgufBuilder().header(1, 0).tensor("a", {n, n, n, n}, DType::kF32, 0)), "");
    const bool is_possible =
        n == 1000;  // an empty tensor, but of a shape that can be computed with
    EXPECT_EQ(error(GgufBuilder().header(1, 0).tensor("a", {n, 0, n}, DType::kF32, 0)) == "",
              is_possible);
    EXPECT_NE(error(GgufBuilder().header(1, 0).tensor("a", {1}, DType::kF32, n).data(64)), "");
  }
}

TEST(Gguf, RefusesWrongHeaders) {
  EXPECT_TRUE(mentions(error(GgufBuilder().put(uint32_t(0x11111111))), "does not start with"));
  EXPECT_TRUE(mentions(error(GgufBuilder().header(0, 0, 1)), "expected 2 or 3, got 1"));
  EXPECT_TRUE(mentions(error(GgufBuilder().header(0, 0, 0x03000000)), "big-endian"));
  EXPECT_EQ(error(GgufBuilder().header(0, 0, 2)), "");
  EXPECT_NE(error(std::span<const std::byte>()), "");
}

TEST(Gguf, RefusesWrongMetadata) {
  EXPECT_TRUE(mentions(error(GgufBuilder().header(0, 1).key("k", GgufType(13)).put(1.0)),
                       "k: expected a type from 0 to 12, got 13"));
  EXPECT_TRUE(mentions(error(GgufBuilder().header(0, 1).key("k", GgufType::kBool).put(uint8_t(2))),
                       "expected a boolean"));
  EXPECT_TRUE(mentions(error(GgufBuilder().header(0, 2).text("k", "a").text("k", "b")), "twice"));
  EXPECT_TRUE(mentions(error(GgufBuilder().header(0, 1).text("", "a")), "empty string"));
  GgufBuilder deep;
  deep.header(0, 1).key("k", GgufType::kArray);
  for (int i = 0; i < 1000; ++i) deep.put(uint32_t(GgufType::kArray)).put(uint64_t(1));
  EXPECT_TRUE(mentions(error(deep), "nested deeper"));
}

TEST(Gguf, RefusesWrongTensors) {
  const auto with = [](auto... arguments) {
    return error(GgufBuilder().header(1, 0).tensor(arguments...).data(128));
  };
  using Sizes = std::vector<uint64_t>;
  EXPECT_TRUE(
      mentions(with("t", Sizes{33}, DType::kQ8_0, 0), "t: expected rows of a multiple of 32"));
  EXPECT_TRUE(mentions(with("t", Sizes{1}, DType(77), 0), "t: unknown type 77"));
  EXPECT_TRUE(mentions(with("t", Sizes{1}, DType::kBool, 0), "t: unknown type 100"));
  EXPECT_TRUE(mentions(with("t", Sizes{1, 1, 1, 1, 1}, DType::kF32, 0), "at most 4 dimensions"));
  EXPECT_TRUE(
      mentions(with("t", Sizes{1}, DType::kF32, 4), "t: offset: expected a multiple of 32"));
  EXPECT_TRUE(
      mentions(with("t", Sizes{33}, DType::kF32, 0), "132 bytes at offset 0 do not fit in 128"));
  EXPECT_TRUE(mentions(with("t", Sizes{1}, DType::kF32, 128), "do not fit"));
  EXPECT_TRUE(mentions(with("", Sizes{1}, DType::kF32, 0), "empty string"));
  GgufBuilder twice;
  twice.header(2, 0).tensor("t", {1}, DType::kF32, 0).tensor("t", {1}, DType::kF32, 32).data(64);
  EXPECT_TRUE(mentions(error(twice), "tensor t: appears twice"));
  GgufBuilder overlap;
  overlap.header(2, 0).tensor("t", {9}, DType::kF32, 0).tensor("u", {1}, DType::kF32, 32).data(64);
  EXPECT_TRUE(mentions(error(overlap), "tensor u: overlaps tensor t"));
}

class SplitGguf : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "sluice_split";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Part `part` (from 1) of 3 with one tensor.
  fs::path write(int part, const std::string& tensor, int total = 3) {
    GgufBuilder b;
    b.header(1, 3).key("split.no", GgufType::kU16).put(uint16_t(part - 1));
    b.key("split.count", GgufType::kU16).put(uint16_t(3));
    b.key("split.tensors.count", GgufType::kI32).put(int32_t(total));
    b.tensor(tensor, {1}, DType::kF32, 0).data(4);
    const fs::path path = folder_ / fmt::format("m-0000{}-of-00003.gguf", part);
    b.write(path);
    return path;
  }

  std::string open_error(const fs::path& path) {
    try {
      const GgufFile file(path);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }

  fs::path folder_;
};

TEST_F(SplitGguf, OpensAllParts) {
  const fs::path first = write(1, "a"), second = write(2, "b");
  EXPECT_TRUE(mentions(open_error(first), "m-00003-of-00003.gguf: cannot open"));
  write(3, "c");
  const GgufFile file(first);
  EXPECT_EQ(file.tensors().size(), 3u);
  for (const char* name : {"a", "b", "c"}) EXPECT_NE(file.tensor(name), nullptr);
  EXPECT_TRUE(mentions(open_error(second), "open the one named *-00001-of-00003.gguf"));
}

TEST_F(SplitGguf, RefusesPartsThatDoNotFit) {
  const fs::path first = write(1, "a");
  write(2, "b");
  write(3, "a");
  EXPECT_TRUE(mentions(open_error(first), "tensor a: appears in two parts"));
  write(1, "a", 4);
  write(3, "c");
  EXPECT_TRUE(mentions(open_error(first), "split.tensors.count: expected 4, got 3"));
  fs::rename(first, folder_ / "m.gguf");
  EXPECT_TRUE(mentions(open_error(folder_ / "m.gguf"), "one of 3 parts"));
}

TEST(MappedFile, MapsAndReleases) {
  const fs::path path = fs::path(testing::TempDir()) / "sluice_mapped";
  GgufBuilder().data(100'000, 1).write(path);
  const MappedFile file(path);
  ASSERT_EQ(file.bytes().size(), 100'000u);
  prefetch(file.bytes().subspan(5000));
  release(file.bytes());
  EXPECT_EQ(file.bytes()[99'999], std::byte(99'999 & 255));
  GgufBuilder().write(path);
  EXPECT_TRUE(MappedFile(path).bytes().empty());
  fs::remove(path);
  EXPECT_THROW(MappedFile{path}, Error);
  EXPECT_THROW(MappedFile{fs::path(testing::TempDir())}, Error);
}

}  // namespace
}  // namespace sluice
