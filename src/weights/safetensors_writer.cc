#include "weights/safetensors_writer.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace sluice {

void SafetensorsWriter::add(std::string name, std::vector<int64_t> shape,
                            std::span<const float> values) {
  add(std::move(name), std::move(shape), DType::kF32, std::as_bytes(values));
}

void SafetensorsWriter::add(std::string name, std::vector<int64_t> shape,
                            std::span<const int32_t> values) {
  add(std::move(name), std::move(shape), DType::kI32, std::as_bytes(values));
}

void SafetensorsWriter::add(std::string name, std::vector<int64_t> shape, DType dtype,
                            std::span<const std::byte> data) {
  TensorView tensor{std::move(name), dtype, std::move(shape), data.data(), data.size()};
  CHECK(bytes_of(dtype, tensor.elements()) == tensor.bytes);
  for (const TensorView& other : tensors_) CHECK(other.name != tensor.name);
  tensors_.push_back(std::move(tensor));
}

void SafetensorsWriter::add_metadata(std::string key, std::string value) {
  metadata_.emplace_back(std::move(key), std::move(value));
}

std::string SafetensorsWriter::header() const {
  OrderedJson header = OrderedJson::object();
  for (const auto& [key, value] : metadata_) header["__metadata__"][key] = value;
  size_t offset = 0;
  for (const TensorView& tensor : tensors_) {
    header[tensor.name] = {{"dtype", info(tensor.dtype).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  return text;
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  const std::string text = header();
  const uint64_t header_bytes = text.size();
  write_whole_file(path, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
    out.write(text.data(), std::streamsize(text.size()));
    for (const TensorView& tensor : tensors_) {
      out.write(reinterpret_cast<const char*>(tensor.data), std::streamsize(tensor.bytes));
    }
  });
}

}  // namespace sluice
