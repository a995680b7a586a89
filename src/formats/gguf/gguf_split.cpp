#include "formats/gguf/gguf_split.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"

namespace wasmquant::gguf {
namespace {

constexpr std::string_view kNumber = "split.no", kCount = "split.count", kTensorCount = "split.tensors.count";
}  // namespace

Result<Part> part_of(const Metadata& metadata) {
  const auto number = metadata.find_count(kNumber), count = metadata.find_count(kCount);
  if (!count || *count <= 1) return Part();
  if (!number || *number >= *count || *count > kMaxParts)
    return error_at(ErrorCode::file_invalid, kNumber, "part {} of {} does not exist; parts count from 0 to at most {}",
                    number.value_or(0), *count, uint64_t{kMaxParts} - 1);
  return Part{static_cast<uint32_t>(*number) + 1, static_cast<uint32_t>(*count), {}};
}

Status check_parts(std::span<const FileIndex> parts) {
  List<std::string_view> names;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].part.count != parts.size())
      return error_at(ErrorCode::file_invalid, text_of("part {}", uint64_t{p + 1}),
                      "the file has split.count {}, but {} files were given; give all parts of one model",
                      parts[p].part.count, uint64_t{parts.size()});
    for (const StoredTensor& tensor : parts[p].tensors) names.push_back(tensor.name);
  }
  if (parts.empty()) return {};
  const auto declared = static_cast<const FileMetadata&>(*parts[0].details).metadata.find_count(kTensorCount);
  if (declared && *declared != names.size())
    return error_at(ErrorCode::tensor_missing, "part 1", "the model should have {} tensors, but its parts have {}",
                    *declared, uint64_t{names.size()});
  if (const auto twice = first_repeated(names.size(), [&](uint32_t i) { return names[i]; }))
    return error_at(ErrorCode::tensor_duplicate, names[*twice], "this tensor is in two parts of the model");
  return {};
}

Result<List<uint32_t>> split_by_size(std::span<const NewTensor> tensors, uint32_t alignment, uint64_t max_bytes) {
  List<uint32_t> first;
  uint64_t held = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TRY(bytes, tensor_bytes(tensors[i].type, tensors[i].shape, tensors[i].name));
    const uint64_t needed = padded(bytes, alignment);
    if (first.empty() || needed > max_bytes || held > max_bytes - needed) {
      first.push_back(static_cast<uint32_t>(i));
      held = 0;
    }
    held += needed;
  }
  if (first.size() > kMaxParts)
    return error_at(ErrorCode::file_too_large, "", "{} parts; the limit is {}: choose a larger part size",
                    uint64_t{first.size()}, kMaxParts);
  return first;
}

Result<List<uint32_t>> split_in_parts(std::span<const NewTensor> tensors, uint32_t alignment, uint32_t count) {
  uint64_t low = 0, high = 0;
  for (const NewTensor& tensor : tensors) {
    TRY(bytes, tensor_bytes(tensor.type, tensor.shape, tensor.name));
    const uint64_t needed = padded(bytes, alignment);
    low = std::max(low, needed);
    high += needed;
  }
  while (low < high) {
    const uint64_t size = low + (high - low) / 2;
    TRY(parts, split_by_size(tensors, alignment, size));
    if (parts.size() <= count)
      high = size;
    else
      low = size + 1;
  }
  return split_by_size(tensors, alignment, high);
}

void erase_split_keys(Metadata& metadata) {
  for (const std::string_view key : {kNumber, kCount, kTensorCount}) metadata.erase(key);
}

Metadata part_metadata(const Metadata& model, uint32_t number, uint32_t count, uint32_t tensor_count) {
  Metadata metadata;
  if (number == 0) {
    metadata = model;
  } else if (const KeyValue* alignment = model.find(kAlignmentKey)) {
    metadata.append(*alignment);
  }
  metadata.set_u16(kNumber, static_cast<uint16_t>(number));
  metadata.set_u16(kCount, static_cast<uint16_t>(count));
  metadata.set_i32(kTensorCount, static_cast<int32_t>(tensor_count));
  return metadata;
}

}  // namespace wasmquant::gguf
