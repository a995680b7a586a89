// safetensors, sans-I/O: header bytes to index, and index to header bytes.
// Layout: 1. u64 little-endian header length N  2. N bytes of JSON  3. data to the end of the file.
// Checks: those of the safetensors crate, and duplicate names are refused (its README's rule).
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
/// Largest data section that is written: JavaScript counts bytes exactly only up to 2^53 - 1.
inline constexpr uint64_t kMaxDataBytes = (uint64_t{1} << 53) - 1 - kMaxHeaderBytes - 8;

/// How many bytes from the start of the file the reader needs, judged from what it has. Feed the prefix again when told
/// so.
struct Need {
  uint64_t bytes;  // from offset 0; 0 = enough
};
/// `prefix` = the first bytes of a file of `file_bytes` in all. Errors: file-truncated, file-too-large, file-invalid.
Result<Need> need(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// The whole header (8 + N bytes or more) to an index. Errors name tensor or byte: those of `need`, file-invalid,
/// tensor-duplicate, dtype-unsupported.
Result<FileIndex> read_index(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// One tensor to write; bytes follow from dtype and shape.
struct Entry {
  std::string name;
  StorageDtype dtype;
  std::vector<uint64_t> shape;
};
struct Header {
  std::string bytes;              // length field and JSON, padded with spaces to a multiple of 8
  std::vector<uint64_t> offsets;  // absolute offset of each entry's data, as entries were given
  uint64_t file_bytes = 0;        // in all
};
/// Data in the order of `entries`. `format: "pt"` is added to the metadata when absent.
/// Errors: tensor-duplicate, file-invalid (a tensor called __metadata__, header over the limit, size overflow, odd
/// bits).
Result<Header> write_header(const List<Entry>& entries, const List<std::pair<std::string, std::string>>& metadata);

/// Byte size of a tensor. Errors: file-invalid on overflow or when the bits do not fill whole bytes.
Result<uint64_t> tensor_bytes(StorageDtype dtype, const std::vector<uint64_t>& shape, std::string_view name);

}  // namespace wasmquant::safetensors
