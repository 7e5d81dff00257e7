#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "weights/numbers.h"
#include "weights/safetensors_writer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> file_with(std::string_view header, size_t data_bytes,
                                 int64_t header_length = -1) {
  const uint64_t length = header_length < 0 ? header.size() : uint64_t(header_length);
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string error(std::span<const std::byte> bytes) {
  try {
    SafetensorsFile(bytes, "x.safetensors");
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

std::string error(std::string_view header, size_t data_bytes) {
  return error(file_with(header, data_bytes));
}

testing::AssertionResult mentions(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not mention \"" << part << "\"";
}

TEST(Safetensors, ReadsWhatItWrites) {
  const fs::path path = fs::path(testing::TempDir()) / "sluice_writer.safetensors";
  const std::vector<float> logits = {1.0f, -2.5f, 3.0f, 4.0f, 5.0f, 6.0f};
  const std::vector<int32_t> tokens = {7, -8, 9};
  SafetensorsWriter writer;
  writer.add("logits", {2, 3}, logits);
  writer.add("tokens", {3}, tokens);
  writer.add("none", {0, 4}, std::span<const float>());
  writer.add_metadata("model", "a \"quoted\" name");
  writer.write(path);
  {
    const SafetensorsFile file(path);
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.tensors()[0].name, "logits");
    const TensorView& stored = *file.tensor("logits");
    EXPECT_EQ(stored.dtype, DType::kF32);
    EXPECT_EQ(stored.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(std::memcmp(stored.data, logits.data(), stored.bytes), 0);
    EXPECT_EQ(uintptr_t(stored.data) % 8, 0u);
    EXPECT_EQ(file.tensor("tokens")->dtype, DType::kI32);
    EXPECT_EQ(load<int32_t>(file.tensor("tokens")->data + 4), -8);
    EXPECT_EQ(file.tensor("none")->bytes, 0u);
    ASSERT_EQ(file.metadata().size(), 1u);
    EXPECT_EQ(file.metadata()[0].second, "a \"quoted\" name");
  }
  SafetensorsWriter().write(path);
  EXPECT_TRUE(SafetensorsFile(path).tensors().empty());
  fs::remove(path);
  EXPECT_THROW(writer.write("/nonexistent/x.safetensors"), Error);
}

TEST(Safetensors, ReadsPublishedLayouts) {
  const SafetensorsFile file(SLUICE_GOLDEN_DIR "/granite-4-hybrid/model.safetensors");
  const TensorView& conv = *file.tensor("model.layers.0.mamba.conv1d.weight");
  EXPECT_EQ(conv.shape, (std::vector<int64_t>{160, 1, 4}));
  EXPECT_EQ(conv.dtype, DType::kBF16);
  EXPECT_EQ(conv.bytes, 1280u);
  EXPECT_EQ(file.metadata()[0], (std::pair<std::string, std::string>("format", "pt")));
}

TEST(Safetensors, AcceptsScalarsEmptyTensorsAndPadding) {
  EXPECT_EQ(error(R"({"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}   )", 4), "");
  EXPECT_EQ(error(R"({"e": {"dtype": "F32", "shape": [0, 9], "data_offsets": [2, 2]},
                      "f": {"shape": [2], "data_offsets": [0, 2], "dtype": "F8_E4M3"}})",
                  2),
            "");
  EXPECT_EQ(error("{}", 0), "");
}

TEST(Safetensors, RefusesWrongLengths) {
  EXPECT_NE(error(std::span<const std::byte>()), "");
  EXPECT_TRUE(mentions(error(file_with("{}", 0, 3)), "header length: expected at most 2, got 3"));
  EXPECT_TRUE(mentions(error(file_with("{}", 0, INT64_MAX)), "header length"));
  EXPECT_TRUE(mentions(error(file_with("", 0, 0)), "expected a JSON object"));
  EXPECT_TRUE(mentions(error("[]", 0), "expected a JSON object"));
  EXPECT_TRUE(mentions(error("{}", 1), "expected 0 bytes of tensors, got 1"));
  EXPECT_TRUE(mentions(error("{\"a\"", 0), "not valid JSON"));
  EXPECT_TRUE(mentions(error("{} x", 0), "not valid JSON"));
}

TEST(Safetensors, RefusesWrongStructure) {
  for (const char* header :
       {R"({"a": 1})", R"({"a": [1]})", R"({"a": {"dtype": 1}})", R"({"a": {"shape": "x"}})",
        R"({"a": {"shape": [[1]]}})", R"({"a": {"shape": [-1]}})", R"({"a": {"shape": [1.5]}})",
        R"({"a": {"dtype": {}}})", R"({"a": {"dtype": null}})", R"({"a": {"color": "F32"}})",
        R"({"a": {"dtype": "F32", "dtype": "F32"}})", R"({"__metadata__": {"a": 1}})",
        R"({"__metadata__": {"a": {}}})", R"({"__metadata__": {}, "__metadata__": {}})",
        R"({"a": {"shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}})", R"({"a": {"data_offsets": [1, 2, 3]}})",
        R"({"a": true})", R"({"a": {"dtype": "F32", "shape": [1]}})", R"({"a": {}})"}) {
    EXPECT_TRUE(mentions(error(header, 4), "x.safetensors: ")) << header;
  }
  std::string deep = "{\"a\": ";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_NE(error(deep, 0), "");
}

std::string entry(const char* name, const char* shape, const char* offsets,
                  const char* dtype = "U8") {
  return fmt::format(R"("{}": {{"dtype": "{}", "shape": {}, "data_offsets": {}}})", name, dtype,
                     shape, offsets);
}

TEST(Safetensors, RefusesWrongLayouts) {
  const auto with = [](const std::string& a, const std::string& b = "") {
    return error("{" + a + (b.empty() ? "" : ", ") + b + "}", 8);
  };
  EXPECT_EQ(with(entry("a", "[4]", "[4, 8]"), entry("b", "[4]", "[0, 4]")), "");
  EXPECT_TRUE(mentions(with(entry("a", "[4]", "[0, 4]"), entry("b", "[3]", "[5, 8]")),
                       "tensor b: data_offsets: expected to begin at 4, got 5"));
  EXPECT_TRUE(mentions(with(entry("a", "[5]", "[0, 5]"), entry("b", "[4]", "[4, 8]")), "tensor b"));
  EXPECT_TRUE(mentions(with(entry("a", "[8]", "[0, 8]"), entry("b", "[8]", "[0, 8]")), "tensor b"));
  EXPECT_TRUE(mentions(with(entry("a", "[4]", "[0, 4]"), entry("a", "[4]", "[4, 8]")), "twice"));
  EXPECT_TRUE(mentions(with(entry("a", "[4]", "[0, 4]")), "expected 4 bytes of tensors, got 8"));
  EXPECT_TRUE(mentions(with(entry("a", "[9]", "[0, 9]")), "expected 9 bytes of tensors, got 8"));
  EXPECT_TRUE(mentions(with(entry("a", "[3]", "[0, 8]")), "expected 3 bytes for U8 (3), got 8"));
  EXPECT_TRUE(mentions(with(entry("a", "[8]", "[8, 0]")), "begin <= end"));
  EXPECT_TRUE(mentions(with(entry("a", "[16]", "[0, 8]", "F4")), "unknown dtype F4"));
  EXPECT_TRUE(mentions(with(entry("a", "[1]", "[0, 8]", "Q4_0")), "unknown dtype Q4_0"));
  EXPECT_TRUE(mentions(with(entry("a", "[4294967296, 4294967296]", "[0, 0]")), "too large"));
  EXPECT_TRUE(mentions(with(entry("a", "[4294967296, 0, 4294967296]", "[0, 0]")), "too large"));
  EXPECT_TRUE(mentions(with(entry("a", "[18446744073709551615]", "[0, 8]")), "too large"));
  EXPECT_NE(with(entry("a", "[8]", "[18446744073709551608, 18446744073709551615]")), "");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const auto bytes = file_with("{" + entry("a", "[4]", "[0, 4]") + "}", 4);
  EXPECT_EQ(error(bytes), "");
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(n));
    EXPECT_NE(error(cut), "") << n;
  }
}

}  // namespace
}  // namespace sluice
