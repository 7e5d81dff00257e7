#include "weights/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/error.h"
#include "weights/numbers.h"

namespace sluice {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int kMaxArrayNesting = 4;
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 30;
constexpr uint64_t kMaxElements = uint64_t(1) << 60;  // in bytes still below 2^63
// The least bytes that an entry takes in the file: what bounds the counts in the header.
constexpr uint64_t kMinKeyValueBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}

  GgufContent parse() {
    const auto [n_tensors, n_values] = header();
    GgufContent content;
    content.metadata.reserve(n_values);
    for (uint64_t i = 0; i < n_values; ++i) content.metadata.push_back(key_value(i));
    const uint64_t alignment = find_alignment(content.metadata);
    std::vector<uint64_t> offsets;
    content.tensors.reserve(n_tensors);
    offsets.reserve(n_tensors);
    for (uint64_t i = 0; i < n_tensors; ++i) {
      content.tensors.push_back(tensor_info(i));
      offsets.push_back(read<uint64_t>("tensor offset"));
    }
    place(content.tensors, offsets, alignment);
    return content;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorCode::kInvalidInput, "{}: {}", where_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  uint64_t left() const { return bytes_.size() - position_; }

  const std::byte* skip(uint64_t n, std::string_view what) {
    if (n > left()) fail("{}: expected {} more bytes, got {}", what, n, left());
    const std::byte* start = bytes_.data() + position_;
    position_ += size_t(n);
    return start;
  }

  template <typename T>
  T read(std::string_view what) {
    return load<T>(skip(sizeof(T), what));
  }

  std::string_view string(std::string_view what) {
    const uint64_t length = read<uint64_t>(what);
    return {reinterpret_cast<const char*>(skip(length, what)), size_t(length)};
  }

  struct Counts {
    uint64_t tensors, values;
  };

  Counts header() {
    if (left() < 4 || load<uint32_t>(bytes_.data()) != kMagic) {
      fail("expected a GGUF file (it does not start with \"GGUF\")");
    }
    position_ = 4;
    const uint32_t version = read<uint32_t>("version");
    if (version == 0x02000000 || version == 0x03000000) {
      throw Error(ErrorCode::kUnsupported, "{}: expected little-endian GGUF, got big-endian",
                  where_);
    }
    if (version != 2 && version != 3) {
      throw Error(ErrorCode::kUnsupported, "{}: version: expected 2 or 3, got {}", where_, version);
    }
    const uint64_t n_tensors = read<uint64_t>("tensor count");
    const uint64_t n_values = read<uint64_t>("metadata count");
    if (n_tensors > left() / kMinTensorBytes) {
      fail("tensor count: {} do not fit in {} bytes", n_tensors, left());
    }
    if (n_values > left() / kMinKeyValueBytes) {
      fail("metadata count: {} do not fit in {} bytes", n_values, left());
    }
    return {n_tensors, n_values};
  }

  std::pair<std::string_view, GgufValue> key_value(uint64_t i) {
    const std::string_view key = string("metadata key");
    if (key.empty()) fail("metadata key {}: expected a name, got an empty string", i);
    if (!keys_.insert(key).second) fail("metadata key {}: appears twice", key);
    GgufValue value;
    value.type = value_type(key);
    if (value.type == GgufType::kArray) {
      value.is_array = true;
      array(key, value, 1);
    } else {
      value.data = bytes_.data() + position_;
      items(key, value.type, 1);
    }
    return {key, value};
  }

  GgufType value_type(std::string_view key) {
    const uint32_t type = read<uint32_t>(key);
    if (type > uint32_t(GgufType::kF64))
      fail("{}: expected a type from 0 to 12, got {}", key, type);
    return GgufType(type);
  }

  void array(std::string_view key, GgufValue& value, int depth) {
    if (depth > kMaxArrayNesting) fail("{}: arrays nested deeper than {}", key, kMaxArrayNesting);
    value.type = value_type(key);
    value.count = read<uint64_t>(key);
    value.data = bytes_.data() + position_;
    if (value.type != GgufType::kArray) return items(key, value.type, value.count);
    check_count(key, value.count, sizeof(uint32_t) + sizeof(uint64_t));
    GgufValue inner;
    for (uint64_t i = 0; i < value.count; ++i) array(key, inner, depth + 1);
  }

  void check_count(std::string_view key, uint64_t count, uint64_t item_bytes) const {
    if (count > left() / item_bytes)
      fail("{}: {} items do not fit in {} bytes", key, count, left());
  }

  /// Skips `count` numbers or strings.
  void items(std::string_view key, GgufType type, uint64_t count) {
    if (type == GgufType::kString) {
      check_count(key, count, sizeof(uint64_t));
      for (uint64_t i = 0; i < count; ++i) string(key);
      return;
    }
    check_count(key, count, gguf_item_bytes(type));
    const std::byte* data = skip(count * gguf_item_bytes(type), key);
    if (type != GgufType::kBool) return;
    for (uint64_t i = 0; i < count; ++i) {
      if (data[i] > std::byte{1})
        fail("{}: expected a boolean (0 or 1), got {}", key, int(data[i]));
    }
  }

  uint64_t find_alignment(const std::vector<std::pair<std::string_view, GgufValue>>& metadata) {
    for (const auto& [key, value] : metadata) {
      if (key != "general.alignment") continue;
      if (value.is_array || value.type != GgufType::kU32) fail("{}: expected a u32", key);
      const uint64_t alignment = load<uint32_t>(value.data);
      if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
        fail("{}: expected a power of two, got {}", key, alignment);
      }
      return alignment;
    }
    return kDefaultAlignment;
  }

  /// Name, shape and type; the shape's product and the bytes are known not to overflow.
  TensorView tensor_info(uint64_t i) {
    TensorView tensor;
    tensor.name = string("tensor name");
    if (tensor.name.empty()) fail("tensor {}: expected a name, got an empty string", i);
    const uint32_t n_dimensions = read<uint32_t>(tensor.name);
    if (n_dimensions > kMaxDimensions) {
      fail("tensor {}: expected at most {} dimensions, got {}", tensor.name, kMaxDimensions,
           n_dimensions);
    }
    tensor.shape.resize(n_dimensions);
    uint64_t product = 1;  // of the dimensions that are not 0
    bool is_empty = false;
    for (uint32_t d = n_dimensions; d-- > 0;) {
      const uint64_t size = read<uint64_t>(tensor.name);
      tensor.shape[d] = int64_t(size);
      if (size > kMaxElements / product) {
        fail("tensor {}: dimension {} is too large", tensor.name, size);
      }
      product *= std::max<uint64_t>(size, 1);
      is_empty |= size == 0;
    }
    const uint32_t type = read<uint32_t>(tensor.name);
    const DTypeInfo* dtype = type < uint32_t(DType::kBool) ? find_dtype(int(type)) : nullptr;
    if (!dtype) {
      throw Error(ErrorCode::kUnsupported, "{}: tensor {}: unknown type {}", where_, tensor.name,
                  type);
    }
    tensor.dtype = dtype->dtype;
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % dtype->block_elements != 0) {
      fail("tensor {}: expected rows of a multiple of {} for {}, got {}", tensor.name,
           dtype->block_elements, dtype->name, row);
    }
    tensor.bytes = is_empty ? 0 : bytes_of(tensor.dtype, int64_t(product));
    return tensor;
  }

  /// Sets the data pointers: offsets aligned, inside the file and without overlap.
  void place(std::vector<TensorView>& tensors, const std::vector<uint64_t>& offsets,
             uint64_t alignment) {
    const uint64_t start =
        std::min((position_ + alignment - 1) / alignment * alignment, uint64_t(bytes_.size()));
    const uint64_t size = bytes_.size() - start;
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < tensors.size(); ++i) {
      TensorView& tensor = tensors[i];
      if (!names.insert(tensor.name).second) fail("tensor {}: appears twice", tensor.name);
      if (offsets[i] % alignment != 0) {
        fail("tensor {}: offset: expected a multiple of {}, got {}", tensor.name, alignment,
             offsets[i]);
      }
      if (offsets[i] > size || tensor.bytes > size - offsets[i]) {
        fail("tensor {}: {} bytes at offset {} do not fit in {} bytes of data", tensor.name,
             tensor.bytes, offsets[i], size);
      }
      tensor.data = bytes_.data() + start + offsets[i];
    }
    std::vector<const TensorView*> sorted;
    for (const TensorView& tensor : tensors) {
      if (tensor.bytes > 0) sorted.push_back(&tensor);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const TensorView* a, const TensorView* b) { return a->data < b->data; });
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->data < sorted[i - 1]->data + sorted[i - 1]->bytes) {
        fail("tensor {}: overlaps tensor {}", sorted[i]->name, sorted[i - 1]->name);
      }
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t position_ = 0;
  std::unordered_set<std::string_view> keys_;
};

}  // namespace

size_t gguf_item_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& where) {
  return Parser(bytes, where).parse();
}

}  // namespace sluice
