// GGUF, sans-I/O: header bytes to index, and index to header bytes. Versions 2 and 3, little-endian; 3 is written.
// Layout: 1. "GGUF"  2. u32 version  3. i64 tensor count  4. i64 key count  5. keys: text, u32 type, value
//   6. tensors: text name, u32 dimension count, i64 dimensions (fastest first), i32 type, u64 offset in the data
//   7. zeros up to a multiple of general.alignment (32)  8. data; every tensor is padded to that multiple
// Text: u64 length, bytes. Source: docs/gguf.md of ggml, and the checks of its loader; limits are those of Hugging
// Face's reader unless said otherwise.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/tensor_index.h"
#include "numeric/ggml_type.h"

namespace wasmquant {
struct Format;
const Format& gguf_format() noexcept;
}  // namespace wasmquant

namespace wasmquant::gguf {

inline constexpr uint32_t kVersion = 3;
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr std::string_view kAlignmentKey = "general.alignment";

/// Memory limit; the headers of the largest vocabularies take about 20 MB.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr uint64_t kMaxKeys = 100'000;
inline constexpr uint64_t kMaxTensors = 10'000'000;
inline constexpr uint64_t kMaxKeyBytes = 65'535;
inline constexpr uint64_t kMaxTextBytes = 10u << 20;
inline constexpr uint64_t kMaxArrayItems = 1u << 20;
inline constexpr uint64_t kMaxNameBytes = 63;  // ggml: 64 with the NUL
inline constexpr uint32_t kMaxDimensions = 4;  // ggml
inline constexpr uint64_t kMaxDimension = uint64_t{1} << 32;

/// One tensor of a file. Offsets are absolute bytes of the file, end exclusive, padding excluded.
struct Tensor {
  std::string name;
  GgmlType type = GgmlType::f32;
  std::vector<uint64_t> shape;  // C order (reverse of the file's); rows are along the last axis
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// How many bytes from the start of the file the reader needs, judging by the prefix so far. The header's length is
/// unknown until its end, so requests grow fourfold: all reads and scans together stay below twice the header.
struct Index {
  uint32_t version = kVersion;
  uint32_t alignment = kDefaultAlignment;
  Metadata metadata;
  List<Tensor> tensors;
};

/// A file's keys, with their types.
struct FileMetadata : FileDetails {
  Metadata metadata;
};

/// Bytes from the start of the file that the reader needs, judging by the prefix so far. The header's length is unknown
/// until its end, so requests grow fourfold: all reads and scans together stay below twice the header.
struct Need {
  uint64_t bytes;  // from offset 0, never beyond the file; 0 = enough
};
/// `prefix`: the first bytes of a file of `file_bytes` bytes. Errors: format-unknown, file-truncated, file-too-large,
/// file-invalid; each names key or tensor and the byte.
Result<Need> need(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// Parses the whole header. Errors: those of `need`, tensor-duplicate, dtype-unsupported; file-truncated.
Result<Index> read_index(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// One tensor to write; bytes follow from type and shape.
struct NewTensor {
  std::string name;
  GgmlType type;
  std::vector<uint64_t> shape;  // C order
};
/// A written header; the tensors' data follow it.
struct Header {
  std::string bytes;              // padded to the alignment
  std::vector<uint64_t> offsets;  // absolute offset of each tensor's data, in the given order
  uint64_t file_bytes = 0;        // total, including the padding after the last tensor; bytes between tensors are zero
};
/// Data in the order of `tensors`; general.alignment of `metadata` sets the padding. Errors: tensor-duplicate,
/// file-invalid (a name of 0 or more than 63 bytes, more than 4 dimensions, general.alignment), format-unsupported (a
/// row that is not a whole number of blocks), file-too-large.
Result<Header> write_header(const Metadata& metadata, std::span<const NewTensor> tensors);

/// Byte size without padding. Errors: format-unsupported (rows are not whole blocks), file-too-large (2^63 bytes).
Result<uint64_t> tensor_bytes(GgmlType type, std::span<const uint64_t> shape, std::string_view name);

/// general.alignment, default 32. Errors: file-invalid unless it is a u32 and a power of two.
Result<uint32_t> alignment_of(const Metadata& metadata);

/// Rounds `bytes` (at most 2^63) up to a multiple of `alignment`, a power of two.
constexpr uint64_t padded(uint64_t bytes, uint32_t alignment) noexcept {
  return (bytes + alignment - 1) & ~uint64_t{alignment - 1};
}

}  // namespace wasmquant::gguf
