// GGUF writer: metadata and tensors to header bytes.
#include <bit>

#include "core/json.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/gguf/gguf.h"
#include "formats/tensor_name.h"

namespace wasmquant::gguf {
namespace {

// JavaScript numbers are exact only up to here.
constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 53) - 1;

Status check(const NewTensor& tensor) {
  const std::string_view name = tensor.name;
  if (name.empty() || name.size() > kMaxNameBytes || name.find('\0') != name.npos || !json::is_utf8(name))
    return error_at(ErrorCode::file_invalid, shown_name(name),
                    "GGUF tensor names have 1 to {} bytes of UTF-8 without NUL, but this one has {}", kMaxNameBytes,
                    uint64_t{name.size()});
  if (tensor.shape.size() > kMaxDimensions)
    return error_at(ErrorCode::file_invalid, name, "GGUF tensors have at most {} dimensions, but this one has {}",
                    kMaxDimensions, uint64_t{tensor.shape.size()});
  return {};
}

}  // namespace

Result<uint64_t> tensor_bytes(GgmlType type, std::span<const uint64_t> shape, std::string_view name) {
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  const GgmlTypeInfo& info = info_of(type);
  const uint64_t columns = shape.empty() ? 1 : shape.back();
  if (columns % info.block != 0)
    return error_at(ErrorCode::format_unsupported, name, "rows of {} elements are not a multiple of {} blocks of {}",
                    columns, info.name, uint32_t{info.block});
  for (const uint64_t dimension : shape)
    if (dimension == 0) return uint64_t{0};
  uint64_t elements = 1;
  for (const uint64_t dimension : shape) {
    if (elements > (kLimit - 1) / dimension)
      return error_at(ErrorCode::file_too_large, name, "the tensor has 2^63 elements or more");
    elements *= dimension;
  }
  const uint64_t blocks = elements / info.block;
  if (blocks > (kLimit - 1) / info.block_bytes)
    return error_at(ErrorCode::file_too_large, name, "the tensor needs 2^63 bytes or more");
  return blocks * info.block_bytes;
}

Result<uint32_t> alignment_of(const Metadata& metadata) {
  const KeyValue* entry = metadata.find(kAlignmentKey);
  if (entry == nullptr) return kDefaultAlignment;
  if (entry->type != ValueType::u32)
    return error_at(ErrorCode::file_invalid, kAlignmentKey, "it must be a u32, found {}", name_of(entry->type));
  const auto alignment = static_cast<uint32_t>(*metadata.find_count(kAlignmentKey));
  if (!std::has_single_bit(alignment))
    return error_at(ErrorCode::file_invalid, kAlignmentKey, "it must be a power of two, found {}", alignment);
  return alignment;
}

Result<Header> write_header(const Metadata& metadata, std::span<const NewTensor> tensors) {
  TRY(alignment, alignment_of(metadata));
  for (const NewTensor& tensor : tensors) TRY_VOID(check(tensor));
  if (const auto twice =
          first_repeated(tensors.size(), [&](uint32_t i) -> std::string_view { return tensors[i].name; }))
    return error_at(ErrorCode::tensor_duplicate, tensors[*twice].name, "two tensors to be written have this name");

  Header header;
  std::string& out = header.bytes;
  out = "GGUF";
  append_u32(out, kVersion);
  append_u64(out, tensors.size());
  append_u64(out, metadata.entries().size());
  for (const KeyValue& entry : metadata.entries()) {
    append_text(out, entry.key);
    append_u32(out, static_cast<uint32_t>(entry.type));
    out += entry.bytes;
  }
  uint64_t end = 0;
  header.offsets.reserve(tensors.size());
  for (const NewTensor& tensor : tensors) {
    TRY(bytes, tensor_bytes(tensor.type, tensor.shape, tensor.name));
    append_text(out, tensor.name);
    append_u32(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t d = tensor.shape.size(); d-- > 0;) append_u64(out, tensor.shape[d]);
    append_u32(out, uint32_t{info_of(tensor.type).file_id});
    append_u64(out, end);
    header.offsets.push_back(end);
    if (bytes > kMaxFileBytes - end || padded(bytes, alignment) > kMaxFileBytes - end)
      return error_at(ErrorCode::file_too_large, tensor.name, "with this tensor the file would exceed {} bytes",
                      kMaxFileBytes);
    end += padded(bytes, alignment);
  }
  const uint64_t header_bytes = padded(out.size(), alignment);
  if (header_bytes > kMaxHeaderBytes || end > kMaxFileBytes - header_bytes)
    return error_at(ErrorCode::file_too_large, "", "a header of {} bytes and data of {} bytes are too large",
                    header_bytes, end);
  out.resize(static_cast<size_t>(header_bytes));
  for (uint64_t& offset : header.offsets) offset += out.size();
  header.file_bytes = out.size() + end;
  return header;
}

}  // namespace wasmquant::gguf
