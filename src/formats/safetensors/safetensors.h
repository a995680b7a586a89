// safetensors, sans-I/O: header bytes to index, and index to header bytes.
// Layout: 1. u64 little-endian header length N  2. N bytes of JSON  3. data to the end of the file.
// Checks: those of the safetensors crate; duplicate names are rejected (its README's rule).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant {
struct Format;
const Format& safetensors_format() noexcept;
}  // namespace wasmquant

namespace wasmquant::safetensors {

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the crate's limit
/// Largest data section to write: JavaScript numbers are exact only up to 2^53 - 1.
inline constexpr uint64_t kMaxDataBytes = (uint64_t{1} << 53) - 1 - kMaxHeaderBytes - 8;

/// Bytes from the start of the file that the reader needs, judging by the prefix so far.
struct Need {
  uint64_t bytes;  // from offset 0; 0 = enough
};
/// `prefix`: the first bytes of a file of `file_bytes` bytes. Errors: file-truncated, file-too-large, file-invalid.
Result<Need> need(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// Parses the header (8 + N bytes or more). Errors: those of `need`, file-invalid, tensor-duplicate, dtype-unsupported.
Result<FileIndex> read_index(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// Writes a header tensor by tensor, so that a large model needs no second list of them.
class HeaderWriter {
 public:
  /// `bytes`: about those that the tensors' text will take (entry_bytes). `metadata` defaults to `format: "pt"`. Errors:
  /// file-invalid.
  static Result<HeaderWriter> begin(const List<std::pair<std::string, std::string>>& metadata, size_t bytes = 0);
  /// About the bytes of a tensor in the header, and no fewer if its name needs no escapes. `data_bytes`: of all tensors,
  /// which bounds the offsets.
  static size_t entry_bytes(size_t name_bytes, std::span<const uint64_t> shape, uint64_t data_bytes) noexcept;

  /// Adds the next tensor, whose data follow those of the last. Errors: file-invalid.
  Status add(std::string_view name, StorageDtype dtype, std::span<const uint64_t> shape);
  /// Errors: tensor-duplicate, file-invalid.
  Result<struct Header> finish();

 private:
  std::string_view name_at(uint32_t place) const noexcept;

  std::string text_;
  List<uint32_t> names_;  // where the text has them, quoted
  std::vector<uint64_t> offsets_;
  uint64_t end_ = 0;
};

/// One tensor to write; bytes follow from dtype and shape.
struct TensorHeader {
  std::string name;
  StorageDtype dtype;
  std::vector<uint64_t> shape;
};
/// A written header; the tensors' data follow it.
struct Header {
  std::string bytes;              // length field and JSON, padded with spaces to a multiple of 8
  std::vector<uint64_t> offsets;  // absolute offset of each entry's data, in the given order
  uint64_t file_bytes = 0;        // total
};
/// A HeaderWriter's work on a list. Errors: tensor-duplicate, file-invalid (a tensor named __metadata__, header over the
/// limit, size overflow, partial bytes).
Result<Header> write_header(const List<TensorHeader>& entries,
                            const List<std::pair<std::string, std::string>>& metadata);

/// Byte size of a tensor. Errors: file-invalid on overflow or partial bytes.
Result<uint64_t> tensor_bytes(StorageDtype dtype, std::span<const uint64_t> shape, std::string_view name);

}  // namespace wasmquant::safetensors
