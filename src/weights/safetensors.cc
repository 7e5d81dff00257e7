#include "weights/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "weights/mapped_file.h"
#include "weights/numbers.h"

namespace sluice {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference implementation
constexpr size_t kMaxDimensions = 8;

struct Entry {
  TensorView tensor;
  std::string dtype;
  std::vector<uint64_t> offsets;
  bool has_shape = false;
};

/// Receives the header's JSON as events. Depth 1 holds tensor names, depth 2 their fields, depth 3
/// the numbers of "shape" and "data_offsets"; anything else is an error.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) return unexpected("a number");
    if (field_ == "shape") {
      std::vector<int64_t>& shape = entries.back().tensor.shape;
      if (shape.size() == kMaxDimensions)
        fail(fmt::format("more than {} dimensions", kMaxDimensions));
      if (value > uint64_t(std::numeric_limits<int64_t>::max())) fail("a dimension is too large");
      shape.push_back(int64_t(value));
    } else {
      if (entries.back().offsets.size() == 2) fail("data_offsets: expected two numbers");
      entries.back().offsets.push_back(value);
    }
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ != 2) return unexpected("a string");
    if (in_metadata_) {
      metadata.emplace_back(field_, value);
    } else if (field_ == "dtype") {
      entries.back().dtype = value;
    } else {
      return unexpected("a string");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (depth_ >= 2) return unexpected("an object");
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || (field_ != "shape" && field_ != "data_offsets")) {
      return unexpected("an array");
    }
    ++depth_;
    return true;
  }

  bool end_array() override {
    --depth_;
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      name_ = name;
      field_.clear();
      in_metadata_ = name == "__metadata__";
      if (in_metadata_) {
        if (seen_metadata_) fail("appears twice");
        seen_metadata_ = true;
        return true;
      }
      entries.emplace_back().tensor.name = name;
      return true;
    }
    field_ = name;
    if (in_metadata_) return true;
    Entry& entry = entries.back();
    const bool repeated = (name == "dtype" && !entry.dtype.empty()) ||
                          (name == "shape" && entry.has_shape) ||
                          (name == "data_offsets" && !entry.offsets.empty());
    if (repeated) fail(fmt::format("{} appears twice", name));
    if (name != "dtype" && name != "shape" && name != "data_offsets") {
      fail(fmt::format("expected dtype, shape and data_offsets, got {}", name));
    }
    entry.has_shape |= name == "shape";
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& e) override {
    throw Error(ErrorCode::kInvalidInput, "{}: header: not valid JSON: {}", where_, e.what());
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw Error(ErrorCode::kInvalidInput, "{}: tensor {}: {}", where_, name_, problem);
  }

  bool unexpected(std::string_view got) const {
    throw Error(ErrorCode::kInvalidInput, "{}: header: {}{}{}: unexpected {}", where_, name_,
                field_.empty() ? "" : ": ", field_, got);
  }

  const std::string& where_;
  int depth_ = 0;
  bool in_metadata_ = false, seen_metadata_ = false;
  std::string name_, field_;  // the keys at depth 1 and 2
};

const DTypeInfo* find_dtype_by_name(std::string_view name) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.block_elements == 1 && name == type.name) return &type;
  }
  return nullptr;
}

/// Fills in the dtype and the size, which must be that of the shape.
void check_size(Entry& entry, const std::string& where) {
  TensorView& tensor = entry.tensor;
  const auto fail = [&](const std::string& problem) {
    throw Error(ErrorCode::kInvalidInput, "{}: tensor {}: {}", where, tensor.name, problem);
  };
  if (entry.dtype.empty() || !entry.has_shape || entry.offsets.size() != 2) {
    fail("expected dtype, shape and two data_offsets");
  }
  const DTypeInfo* dtype = find_dtype_by_name(entry.dtype);
  if (!dtype) {
    throw Error(ErrorCode::kUnsupported, "{}: tensor {}: unknown dtype {}", where, tensor.name,
                entry.dtype);
  }
  tensor.dtype = dtype->dtype;
  const uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (end < begin) fail(fmt::format("data_offsets: expected begin <= end, got {}, {}", begin, end));
  uint64_t product = uint64_t(dtype->block_bytes);  // bytes, with empty dimensions counted as one
  bool is_empty = false;
  for (const int64_t size : tensor.shape) {
    if (size != 0 && product > uint64_t(std::numeric_limits<int64_t>::max()) / uint64_t(size)) {
      fail(fmt::format("shape {} is too large", shape_text(tensor.shape)));
    }
    product *= uint64_t(std::max<int64_t>(size, 1));
    is_empty |= size == 0;
  }
  tensor.bytes = is_empty ? 0 : size_t(product);
  if (tensor.bytes != end - begin) {
    fail(fmt::format("data_offsets: expected {} bytes for {} {}, got {}", tensor.bytes, dtype->name,
                     shape_text(tensor.shape), end - begin));
  }
}

/// In order of offsets the tensors must fill the data exactly.
void check_layout(const std::vector<Entry>& entries, uint64_t data_bytes,
                  const std::string& where) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry* a, const Entry* b) { return a->offsets < b->offsets; });
  uint64_t position = 0;
  for (const Entry* entry : sorted) {
    if (entry->offsets[0] != position) {
      throw Error(ErrorCode::kInvalidInput,
                  "{}: tensor {}: data_offsets: expected to begin at {}, got {}", where,
                  entry->tensor.name, position, entry->offsets[0]);
    }
    position = entry->offsets[1];
  }
  if (position != data_bytes) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected {} bytes of tensors, got {}", where,
                position, data_bytes);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(std::make_unique<MappedFile>(path)) {
  parse(file_->bytes());
}

SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes, std::filesystem::path name)
    : path_(std::move(name)) {
  parse(bytes);
}

SafetensorsFile::~SafetensorsFile() = default;

void SafetensorsFile::parse(std::span<const std::byte> bytes) {
  const std::string where = path_.string();
  if (bytes.size() < 8) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected a safetensors file, got {} bytes", where,
                bytes.size());
  }
  const uint64_t header_bytes = load<uint64_t>(bytes.data());
  const uint64_t limit = std::min<uint64_t>(bytes.size() - 8, kMaxHeaderBytes);
  if (header_bytes > limit) {
    throw Error(ErrorCode::kInvalidInput, "{}: header length: expected at most {}, got {}", where,
                limit, header_bytes);
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + 8,
                                size_t(header_bytes));
  if (!header.starts_with('{')) {
    throw Error(ErrorCode::kInvalidInput, "{}: header: expected a JSON object", where);
  }
  HeaderReader reader(where);
  nlohmann::json::sax_parse(header, &reader);
  for (Entry& entry : reader.entries) check_size(entry, where);
  const std::span<const std::byte> data = bytes.subspan(8 + size_t(header_bytes));
  check_layout(reader.entries, data.size(), where);
  for (Entry& entry : reader.entries) {
    entry.tensor.data = data.data() + entry.offsets[0];
    tensors_.push_back(std::move(entry.tensor));
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second) {
      throw Error(ErrorCode::kInvalidInput, "{}: tensor {}: appears twice", where,
                  tensors_[i].name);
    }
  }
  metadata_ = std::move(reader.metadata);
}

const TensorView* SafetensorsFile::tensor(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace sluice
