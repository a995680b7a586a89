#include "formats/gguf/gguf_split.h"

#include "core/message.h"
#include "core/order.h"

namespace wasmquant::gguf {
namespace {

constexpr std::string_view kNumber = "split.no", kCount = "split.count", kTensorCount = "split.tensors.count";
constexpr size_t kDigits = 5;

std::string digits_of(uint32_t number) {
  std::string digits;
  append_number(digits, uint64_t{number});
  return digits.size() < kDigits ? std::string(kDigits - digits.size(), '0') + digits : digits;
}

}  // namespace

std::string part_name(std::string_view stem, uint32_t number, uint32_t count) {
  return text_of("{}-{}-of-{}.gguf", stem, digits_of(number), digits_of(count));
}

Status check_parts(std::span<const FileIndex> parts) {
  const auto metadata_of = [&](size_t part) -> const Metadata& {
    return static_cast<const FileMetadata&>(*parts[part].details).metadata;
  };
  List<std::string_view> names;
  for (size_t p = 0; p < parts.size(); ++p) {
    const Metadata& metadata = metadata_of(p);
    const std::string where = text_of("part {}", uint64_t{p + 1});
    const auto number = metadata.find_count(kNumber), count = metadata.find_count(kCount);
    if (!number || !count)
      return error_at(ErrorCode::file_invalid, where, "a file of a split model has the keys split.no and split.count");
    if (*number != p || *count != parts.size())
      return error_at(ErrorCode::file_invalid, where, "the file says it is part {} of {}, here it is one of {}",
                      *number + 1, *count, uint64_t{parts.size()});
    for (const StoredTensor& tensor : parts[p].tensors) names.push_back(tensor.name);
  }
  if (parts.empty()) return {};
  const auto declared = metadata_of(0).find_count(kTensorCount);
  if (declared && *declared != names.size())
    return error_at(ErrorCode::tensor_missing, "part 1", "the model is said to have {} tensors, its parts have {}",
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
    return error_at(ErrorCode::file_too_large, "", "{} parts, allowed are {}: let parts be larger",
                    uint64_t{first.size()}, kMaxParts);
  return first;
}

void erase_split_keys(Metadata& metadata) {
  for (const std::string_view key : {kNumber, kCount, kTensorCount}) metadata.erase(key);
}

Metadata part_metadata(const Metadata& model, uint32_t number, uint32_t count, uint32_t tensor_count) {
  Metadata metadata;
  if (number == 0) {
    metadata = model;
  } else if (const Entry* alignment = model.find(kAlignmentKey)) {
    metadata.append(*alignment);
  }
  metadata.set_u16(kNumber, static_cast<uint16_t>(number));
  metadata.set_u16(kCount, static_cast<uint16_t>(count));
  metadata.set_i32(kTensorCount, static_cast<int32_t>(tensor_count));
  return metadata;
}

}  // namespace wasmquant::gguf
