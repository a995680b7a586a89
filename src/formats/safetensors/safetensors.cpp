// safetensors reader: the length field, then the header, checked against the file size. Order and content of the checks
// follow the safetensors crate (Metadata::validate and read_metadata).
#include "formats/safetensors/safetensors.h"

#include <utility>

#include "core/list.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/safetensors/safetensors_header.h"
#include "formats/tensor_name.h"

namespace wasmquant::safetensors {
namespace {

constexpr uint64_t kLengthBytes = 8;

uint64_t read_u64(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

std::string range_of(const StoredTensor& tensor) { return text_of("[{}, {})", tensor.begin, tensor.end); }

Error invalid(const StoredTensor& tensor, std::string message) {
  return {ErrorCode::file_invalid, shown_name(tensor.name), std::move(message)};
}

// Zero-sized tensors come before the one at the same offset; names break ties, for a deterministic order.
void sort_by_offset(List<StoredTensor>& tensors) {
  const auto before = [&tensors](uint32_t i, uint32_t j) {
    const StoredTensor &a = tensors[i], &b = tensors[j];
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end < b.end;
    return a.name < b.name;
  };
  List<StoredTensor> sorted;
  sorted.reserve(tensors.size());
  for (const uint32_t i : sorted_order(tensors.size(), before)) sorted.push_back(std::move(tensors[i]));
  tensors = std::move(sorted);
}

// Sorted by offset, tensors must tile the data section: no gap, no overlap, no shared range, no bytes after the last.
Status check_layout(const List<StoredTensor>& tensors, uint64_t data_bytes) {
  uint64_t expected = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != expected)
      return invalid(
          tensor,
          text_of(
              "data_offsets {} must begin at {}, where the tensor before ends: tensors may not overlap or leave holes",
              range_of(tensor), expected));
    if (tensor.end < tensor.begin)
      return invalid(tensor, text_of("data_offsets {} end before they begin", range_of(tensor)));
    TRY(bytes, tensor_bytes(tensor.dtype, tensor.shape, tensor.name));
    if (tensor.end - tensor.begin != bytes)
      return invalid(tensor, text_of("data_offsets {} hold {} bytes, but dtype and shape need {}", range_of(tensor),
                                     tensor.end - tensor.begin, bytes));
    expected = tensor.end;
  }
  if (expected > data_bytes)
    return error_at(
        ErrorCode::file_truncated, shown_name(tensors.back().name),
        "the tensors need {} bytes of data, but the file has {}: {} bytes are missing. Download the file again",
        expected, data_bytes, expected - data_bytes);
  if (expected < data_bytes)
    return error_at(
        ErrorCode::file_invalid, "",
        "the file has {} bytes of data, the tensors cover only {}; bytes after the last tensor are not allowed",
        data_bytes, expected);
  return {};
}

}  // namespace

Result<Need> need(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  if (file_bytes < kLengthBytes)
    return error_at(ErrorCode::file_truncated, "byte 0", "the file has {} bytes, fewer than the 8 of its header length",
                    file_bytes);
  if (prefix.size() < kLengthBytes) return Need{kLengthBytes};
  const uint64_t header_bytes = read_u64(prefix);
  if (header_bytes > kMaxHeaderBytes)
    return error_at(ErrorCode::file_too_large, "byte 0", "the header length is {}; the limit is {}", header_bytes,
                    kMaxHeaderBytes);
  if (header_bytes > file_bytes - kLengthBytes)
    return error_at(ErrorCode::file_truncated, "byte 0", "the header length is {}, but only {} bytes follow",
                    header_bytes, file_bytes - kLengthBytes);
  return Need{prefix.size() < kLengthBytes + header_bytes ? kLengthBytes + header_bytes : 0};
}

Result<FileIndex> read_index(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  TRY(missing, need(prefix, file_bytes));
  if (missing.bytes > 0)
    return error_at(ErrorCode::file_truncated, text_of("byte {}", prefix.size()),
                    "the header has {} bytes, but only {} were read", missing.bytes, prefix.size());
  const uint64_t header_bytes = read_u64(prefix);
  const auto text = prefix.subspan(kLengthBytes, static_cast<size_t>(header_bytes));
  TRY(index, parse_header({reinterpret_cast<const char*>(text.data()), text.size()}, kLengthBytes));

  sort_by_offset(index.tensors);
  const uint64_t data_begin = kLengthBytes + header_bytes;
  TRY_VOID(check_layout(index.tensors, file_bytes - data_begin));
  for (StoredTensor& tensor : index.tensors) {
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
  return std::move(index);
}

Result<uint64_t> tensor_bytes(StorageDtype dtype, std::span<const uint64_t> shape, std::string_view name) {
  const StorageDtypeInfo& info = info_of(dtype);
  uint64_t bits = 1;
  const auto multiply = [&bits](uint64_t factor) {
    const bool fits = factor == 0 || bits <= ~uint64_t{0} / factor;
    bits *= factor;
    return fits;
  };
  // From left to right like the crate: [0, huge, huge] has no elements, [huge, huge, 0] overflows.
  bool fits = true;
  for (const uint64_t dimension : shape) fits = fits && multiply(dimension);
  if (!fits || !multiply(info.bits))
    return error_at(ErrorCode::file_invalid, shown_name(name), "the size of the shape in bits exceeds 2^64 - 1");
  if (bits % 8 != 0)
    return error_at(ErrorCode::file_invalid, shown_name(name), "{} bits of {} do not fill whole bytes", bits,
                    info.name);
  return bits / 8;
}

}  // namespace wasmquant::safetensors
