#include "weights/checkpoint.h"

#include "base/error.h"
#include "weights/gguf_checkpoint.h"
#include "weights/hf_checkpoint.h"
#include "weights/packed_checkpoint.h"

namespace sluice {

int64_t MatrixSource::stored_row(int64_t row) const {
  if (interleaved_heads == 0) return row;
  const int64_t head_rows = rows / interleaved_heads, half = head_rows / 2;
  const int64_t r = row % head_rows;
  return row - r + r % half * 2 + r / half;
}

std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw Error(ErrorCode::kNotFound, "{}: no such file or folder", path.string());
  }
  if (std::filesystem::is_directory(status)) {
    const bool packed = std::filesystem::exists(path / kPackedFileName, error);
    return packed ? open_packed_checkpoint(path) : open_hf_checkpoint(path);
  }
  if (path.extension() == ".gguf") {
    return open_gguf_checkpoint(std::make_unique<GgufFile>(path));
  }
  throw Error(ErrorCode::kInvalidInput,
              "{}: expected a folder with config.json and *.safetensors, or a .gguf file",
              path.string());
}

}  // namespace sluice
