#include "weights/gguf.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "weights/gguf_parser.h"
#include "weights/mapped_file.h"
#include "weights/numbers.h"

namespace sluice {
namespace {

constexpr std::string_view kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};

std::string_view string_at(const std::byte* data) {
  const size_t length = size_t(load<uint64_t>(data));
  return {reinterpret_cast<const char*>(data + sizeof(uint64_t)), length};
}

bool is_integer(GgufType type) {
  return type != GgufType::kString && type != GgufType::kArray && type != GgufType::kF32 &&
         type != GgufType::kF64 && type != GgufType::kBool;
}

/// A u64 of 2^63 or more comes out negative: see `fits`.
int64_t integer_at(GgufType type, const std::byte* data) {
  switch (type) {
    case GgufType::kBool:
    case GgufType::kU8:
      return load<uint8_t>(data);
    case GgufType::kI8:
      return load<int8_t>(data);
    case GgufType::kU16:
      return load<uint16_t>(data);
    case GgufType::kI16:
      return load<int16_t>(data);
    case GgufType::kU32:
      return load<uint32_t>(data);
    case GgufType::kI32:
      return load<int32_t>(data);
    default:
      return load<int64_t>(data);
  }
}

bool fits(GgufType type, const std::byte* data) {
  return type != GgufType::kU64 || load<int64_t>(data) >= 0;
}

/// The shortest decimal that rounds to `value`, as a double.
double shortest(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  double result = 0.0;
  std::from_chars(text, written.ptr, result);
  return result;
}

double number_at(GgufType type, const std::byte* data) {
  if (type == GgufType::kF32) return shortest(load<float>(data));
  if (type == GgufType::kF64) return load<double>(data);
  if (type == GgufType::kU64) return double(load<uint64_t>(data));
  return double(integer_at(type, data));
}

/// `text` in quotes, cut after `limit` bytes, without anything a terminal would obey.
std::string quoted(std::string_view text, size_t limit) {
  size_t end = std::min(text.size(), limit);
  while (end < text.size() && end > 0 && (uint8_t(text[end]) & 0xC0) == 0x80) --end;  // UTF-8
  std::string out = "\"";
  for (const char c : text.substr(0, end)) {
    if (c == '\n') {
      out += "\\n";
    } else if (uint8_t(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += c;
    }
  }
  return out + (end < text.size() ? "...\"" : "\"");
}

std::string item_text(GgufType type, const std::byte* data, size_t limit) {
  if (type == GgufType::kString) return quoted(string_at(data), limit);
  if (type == GgufType::kBool) return load<uint8_t>(data) ? "true" : "false";
  if (type == GgufType::kU64) return fmt::format("{}", load<uint64_t>(data));
  if (is_integer(type)) return fmt::format("{}", integer_at(type, data));
  return fmt::format("{}", number_at(type, data));
}

std::string describe(const GgufValue& value) {
  const std::string_view type = kTypeNames[size_t(value.type)];
  return value.is_array ? fmt::format("an array of {} {}", value.count, type)
                        : fmt::format("{} ({})", gguf_value_text(value), type);
}

/// "x-00001-of-00003.gguf" for part 1 of 3.
std::string part_suffix(int64_t part, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", part, count);
}

}  // namespace

std::string gguf_value_text(const GgufValue& value, size_t limit) {
  if (!value.is_array) return item_text(value.type, value.data, limit);
  if (value.type == GgufType::kArray) return fmt::format("[{} arrays]", value.count);
  std::string text = "[";
  const std::byte* data = value.data;
  for (uint64_t i = 0; i < value.count; ++i) {
    if (i > 0) text += ", ";
    if (text.size() >= limit) return text + fmt::format("...] ({})", value.count);
    text += item_text(value.type, data, limit);
    data += value.type == GgufType::kString ? sizeof(uint64_t) + string_at(data).size()
                                            : gguf_item_bytes(value.type);
  }
  return text + "]";
}

GgufFile::GgufFile(const std::filesystem::path& path) : path_(path) {
  parts_.push_back(std::make_unique<MappedFile>(path));
  GgufContent content = parse_gguf(parts_[0]->bytes(), path.string());
  metadata_ = std::move(content.metadata);
  tensors_ = std::move(content.tensors);
  index();
  open_parts();
}

GgufFile::GgufFile(std::span<const std::byte> bytes, std::filesystem::path name)
    : path_(std::move(name)) {
  GgufContent content = parse_gguf(bytes, path_.string());
  metadata_ = std::move(content.metadata);
  tensors_ = std::move(content.tensors);
  index();
}

GgufFile::~GgufFile() = default;

void GgufFile::open_parts() {
  const int64_t count = integer("split.count", 1);
  if (count <= 1) return;
  const std::string first = path_.string(), suffix = part_suffix(1, count);
  if (integer("split.no", 0) != 0 || !first.ends_with(suffix)) {
    throw Error(ErrorCode::kInvalidInput, "{}: one of {} parts: open the one named *{}", first,
                count, suffix);
  }
  const std::string stem = first.substr(0, first.size() - suffix.size());
  for (int64_t part = 2; part <= count; ++part) {
    const std::string name = stem + part_suffix(part, count);
    parts_.push_back(std::make_unique<MappedFile>(name));
    GgufContent content = parse_gguf(parts_.back()->bytes(), name);
    for (TensorView& tensor : content.tensors) tensors_.push_back(std::move(tensor));
  }
  index();
  const int64_t expected = integer("split.tensors.count", int64_t(tensors_.size()));
  if (expected != int64_t(tensors_.size())) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: split.tensors.count: expected {}, got {} in {} parts", first, expected,
                tensors_.size(), count);
  }
}

void GgufFile::index() {
  for (size_t i = 0; i < metadata_.size(); ++i) metadata_index_[metadata_[i].first] = i;
  tensor_index_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensor_index_.emplace(tensors_[i].name, i).second) {
      throw Error(ErrorCode::kInvalidInput, "{}: tensor {}: appears in two parts", path_.string(),
                  tensors_[i].name);
    }
  }
}

void GgufFile::fail(std::string_view key, std::string_view expected, const GgufValue* got) const {
  throw Error(ErrorCode::kInvalidInput, "{}: {}: expected {}, got {}", path_.string(), key,
              expected, got ? describe(*got) : "nothing");
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = metadata_index_.find(key);
  return it == metadata_index_.end() ? nullptr : &metadata_[it->second].second;
}

const TensorView* GgufFile::tensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

const GgufValue& GgufFile::require(std::string_view key, std::string_view expected) const {
  const GgufValue* value = find(key);
  if (!value) fail(key, expected, nullptr);
  return *value;
}

int64_t GgufFile::integer(std::string_view key) const {
  const GgufValue& value = require(key, "an integer");
  if (value.is_array || !is_integer(value.type)) fail(key, "an integer", &value);
  if (!fits(value.type, value.data)) fail(key, "an integer below 2^63", &value);
  return integer_at(value.type, value.data);
}

int64_t GgufFile::integer(std::string_view key, int64_t fallback) const {
  return find(key) ? integer(key) : fallback;
}

double GgufFile::number(std::string_view key) const {
  const GgufValue& value = require(key, "a number");
  const bool is_number =
      is_integer(value.type) || value.type == GgufType::kF32 || value.type == GgufType::kF64;
  if (value.is_array || !is_number) fail(key, "a number", &value);
  return number_at(value.type, value.data);
}

double GgufFile::number(std::string_view key, double fallback) const {
  return find(key) ? number(key) : fallback;
}

bool GgufFile::boolean(std::string_view key, bool fallback) const {
  const GgufValue* value = find(key);
  if (!value) return fallback;
  if (value->is_array || value->type != GgufType::kBool) fail(key, "true or false", value);
  return load<uint8_t>(value->data) != 0;
}

std::string_view GgufFile::text(std::string_view key) const {
  const GgufValue& value = require(key, "a string");
  if (value.is_array || value.type != GgufType::kString) fail(key, "a string", &value);
  return string_at(value.data);
}

std::string_view GgufFile::text(std::string_view key, std::string_view fallback) const {
  return find(key) ? text(key) : fallback;
}

std::vector<std::string_view> GgufFile::texts(std::string_view key) const {
  std::vector<std::string_view> out;
  const GgufValue* value = find(key);
  if (!value) return out;
  if (!value->is_array || value->type != GgufType::kString) fail(key, "a list of strings", value);
  out.reserve(size_t(value->count));
  const std::byte* data = value->data;
  for (uint64_t i = 0; i < value->count; ++i) {
    out.push_back(string_at(data));
    data += sizeof(uint64_t) + out.back().size();
  }
  return out;
}

std::vector<int64_t> GgufFile::integers(std::string_view key) const {
  std::vector<int64_t> out;
  const GgufValue* value = find(key);
  if (!value) return out;
  if (!is_integer(value->type) && value->type != GgufType::kBool) {
    fail(key, "a list of integers", value);
  }
  out.reserve(size_t(value->count));
  const size_t bytes = gguf_item_bytes(value->type);
  for (size_t i = 0; i < value->count; ++i) {
    const std::byte* item = value->data + i * bytes;
    if (!fits(value->type, item)) fail(key, "integers below 2^63", value);
    out.push_back(integer_at(value->type, item));
  }
  return out;
}

std::vector<double> GgufFile::numbers(std::string_view key) const {
  std::vector<double> out;
  const GgufValue* value = find(key);
  if (!value) return out;
  const size_t bytes = gguf_item_bytes(value->type);
  if (!value->is_array || bytes == 0 || value->type == GgufType::kBool) {
    fail(key, "a list of numbers", value);
  }
  out.reserve(size_t(value->count));
  for (size_t i = 0; i < value->count; ++i) {
    out.push_back(number_at(value->type, value->data + i * bytes));
  }
  return out;
}

}  // namespace sluice
