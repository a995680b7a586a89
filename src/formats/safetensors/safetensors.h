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
#include "core/order.h"
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

/// Places tensors one after another and counts the bytes of their header, whose text is then written tensor by tensor: a
/// large model needs no second list of them, and no whole text.
class HeaderLayout {
 public:
  /// `metadata` defaults to `format: "pt"`. Errors: file-invalid.
  static Result<HeaderLayout> begin(const List<std::pair<std::string, std::string>>& metadata);

  /// Adds the next tensor, whose data follow those of the last. Errors: file-invalid.
  Status add(std::string_view name, StorageDtype dtype, std::span<const uint64_t> shape);
  /// `name_of`: of an added tensor, by number. Errors: tensor-duplicate, file-invalid.
  Status finish(const CallableRef<std::string(uint32_t tensor)>& name_of);

  /// Bytes of the header so far, and of the data. After finish(): where the data begin.
  uint64_t header_bytes() const noexcept { return header_bytes_; }
  uint64_t data_bytes() const noexcept { return data_bytes_; }

  /// The pieces of the text after finish(): what comes before the first tensor,
  std::string head() const;
  /// a tensor, whose data begin at `begin` of all data,
  static void append(std::string& out, std::string_view name, StorageDtype dtype, std::span<const uint64_t> shape,
                     uint64_t begin, uint64_t bytes);
  /// and what comes after the last: padding with spaces to a multiple of 8.
  std::string tail() const;

 private:
  std::string metadata_;
  std::string scratch_;  // text of the tensor that was added last
  List<uint64_t> name_hashes_;
  uint64_t header_bytes_ = 0, data_bytes_ = 0, tail_bytes_ = 0;
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
/// The header of a list. Errors: tensor-duplicate, file-invalid (a tensor named __metadata__, header over the
/// limit, size overflow, partial bytes).
Result<Header> write_header(const List<TensorHeader>& entries,
                            const List<std::pair<std::string, std::string>>& metadata);

/// Byte size of a tensor. Errors: file-invalid on overflow or partial bytes.
Result<uint64_t> tensor_bytes(StorageDtype dtype, std::span<const uint64_t> shape, std::string_view name);

}  // namespace wasmquant::safetensors
