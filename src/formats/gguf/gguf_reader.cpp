// GGUF reader. One scan serves `need` and `read_index`: it walks the prefix and ends with a result, an error, or the
// number of missing bytes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/json.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/header_cursor.h"
#include "formats/tensor_name.h"

namespace wasmquant::gguf {
namespace {

constexpr uint64_t kFixedBytes = 24;       // magic, version, two counts
constexpr uint64_t kFirstRequest = 65536;  // enough for metadata without a vocabulary
constexpr uint64_t kGrowth = 4;
// Minimum sizes: key of one byte, type, value of one byte; name, dimension count, type, offset.
constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1, kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;

class HeaderScan {
 public:
  /// `index` null: walk only.
  HeaderScan(std::span<const uint8_t> prefix, uint64_t file_bytes, Index* index)
      : in_(prefix, file_bytes), index_(index) {}

  /// False: error, or more bytes needed.
  bool run() { return fixed_part() && keys() && tensors(); }

  /// Where it stopped: after the tensor list, if it is whole.
  HeaderCursor& cursor() { return in_; }

 private:
  bool fixed_part() {
    in_.name_byte();
    if (in_.file_bytes() < kFixedBytes)
      return in_.fail(ErrorCode::file_truncated, "a GGUF header has at least {} bytes, but the file has {}",
                      kFixedBytes, in_.file_bytes());
    const char* magic = in_.take(4);
    if (magic == nullptr) return false;
    if (std::memcmp(magic, "GGUF", 4) != 0)
      return in_.fail(ErrorCode::format_unknown, "a GGUF file begins with the letters GGUF");
    uint32_t version = 0;
    in_.name_byte();
    if (!in_.take_number(version)) return false;
    if ((version & 0xFFFF) == 0 && version != 0)
      return in_.fail(ErrorCode::file_invalid, "the bytes of the version are swapped: big-endian files are not read");
    if (version < 2 || version > kVersion)
      return in_.fail(ErrorCode::file_invalid, "GGUF version {}; versions 2 and 3 are read", version);
    if (index_ != nullptr) index_->version = version;
    return in_.take_count(tensor_count_, kMaxTensors, kLeastTensorBytes) &&
           in_.take_count(key_count_, kMaxKeys, kLeastKeyBytes);
  }

  bool keys() {
    for (uint64_t i = 0; i < key_count_; ++i) {
      in_.name_byte();
      std::string_view key;
      if (!in_.take_text(key, kMaxKeyBytes)) return false;
      if (key.empty() || !json::is_utf8(key))
        return in_.fail(ErrorCode::file_invalid,
                        key.empty() ? "a metadata key is empty" : "a metadata key is not valid UTF-8");
      if (!value(key)) return false;
    }
    return true;
  }

  bool value(std::string_view key) {
    in_.name(shown_name(key));
    ValueType type{};
    if (!in_.take_type(type)) return false;
    const uint64_t begin = in_.at();
    ValueType element = type;
    uint64_t count = 1;
    if (type == ValueType::array && (!in_.take_type(element) || !in_.take_array_count(element, count))) return false;
    if (element == ValueType::text) {
      std::string_view text;
      for (uint64_t i = 0; i < count; ++i)
        if (!in_.take_text(text, kMaxTextBytes)) return false;
    } else if (in_.take(count * fixed_bytes(element)) == nullptr) {
      return false;
    }
    if (index_ != nullptr) index_->metadata.append({std::string(key), type, std::string(in_.since(begin))});
    return true;
  }

  bool tensors() {
    for (uint64_t i = 0; i < tensor_count_; ++i)
      if (!tensor()) return false;
    return true;
  }

  bool tensor() {
    in_.name_byte();
    const uint64_t begin = in_.at();
    std::string_view name;
    if (!in_.take_text(name, kMaxKeyBytes)) return false;
    if (name.empty() || !json::is_utf8(name) || name.find('\0') != name.npos)
      return in_.fail(ErrorCode::file_invalid, "a tensor name must be valid UTF-8 without NUL, and not empty");
    in_.name(shown_name(name));
    if (name.size() > kMaxNameBytes)
      return in_.fail(ErrorCode::file_too_large,
                      "this tensor name has {} bytes; GGUF readers accept at most {} (byte {}). Rename the tensor",
                      name.size(), kMaxNameBytes, begin);
    uint32_t rank = 0;
    if (!in_.take_number(rank)) return false;
    if (rank > kMaxDimensions)
      return in_.fail(ErrorCode::file_invalid, "{} dimensions; the limit is {} (byte {})", rank, kMaxDimensions,
                      in_.at() - 4);
    uint64_t dimensions[kMaxDimensions];
    for (uint32_t d = 0; d < rank; ++d) {
      if (!in_.take_number(dimensions[d])) return false;
      if (dimensions[d] > kMaxDimension)
        return in_.fail(ErrorCode::file_invalid, "dimension {} is not in 0 to {} (byte {})", d, kMaxDimension,
                        in_.at() - 8);
    }
    uint32_t id = 0;
    uint64_t offset = 0;
    if (!in_.take_number(id)) return false;
    const auto type = ggml_type_of(id);
    if (!type)
      return in_.fail(ErrorCode::dtype_unsupported, "tensor type {} is unknown or was removed from GGUF (byte {})", id,
                      in_.at() - 4);
    if (!in_.take_number(offset)) return false;
    if (index_ == nullptr) return true;
    Tensor& tensor = index_->tensors.emplace_back();
    tensor.name = name;
    tensor.type = *type;
    for (uint32_t d = rank; d-- > 0;) tensor.shape.push_back(dimensions[d]);
    tensor.begin = offset;
    return true;
  }

  HeaderCursor in_;
  uint64_t tensor_count_ = 0, key_count_ = 0;
  Index* index_;
};

Status check_unique(const Index& index) {
  const List<KeyValue>& entries = index.metadata.entries();
  if (const auto twice = first_repeated(entries.size(), [&](uint32_t i) -> std::string_view { return entries[i].key; }))
    return error_at(ErrorCode::file_invalid, shown_name(entries[*twice].key), "this metadata key appears twice");
  const List<Tensor>& tensors = index.tensors;
  if (const auto twice =
          first_repeated(tensors.size(), [&](uint32_t i) -> std::string_view { return tensors[i].name; }))
    return error_at(ErrorCode::tensor_duplicate, tensors[*twice].name, "this name appears twice in the file");
  return {};
}

// Makes file-relative offsets absolute. Each tensor must start where the previous one, padded, ends.
Status place_tensors(Index& index, uint64_t header_end, uint64_t file_bytes) {
  const uint64_t data_begin = padded(header_end, index.alignment);
  uint64_t expected = 0;
  for (Tensor& tensor : index.tensors) {
    TRY(bytes, tensor_bytes(tensor.type, tensor.shape, tensor.name));
    if (tensor.begin != expected)
      return error_at(ErrorCode::file_invalid, tensor.name,
                      "its data offset is {}, but the tensor before it ends at {}", tensor.begin, expected);
    // Both sides stay below 2^63: file sizes do, and each term was compared to one.
    const uint64_t begin = data_begin + expected;
    if (begin > file_bytes || bytes > file_bytes - begin)
      return error_at(
          ErrorCode::file_truncated, tensor.name,
          "its {} bytes from byte {} on are not all in the file, which has {}: at least {} bytes are missing. "
          "Download the file again",
          bytes, begin, file_bytes, begin + bytes - file_bytes);
    expected += padded(bytes, index.alignment);
    tensor.begin = begin;
    tensor.end = begin + bytes;
  }
  return {};
}

}  // namespace

Result<Need> need(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  HeaderScan scan(prefix, file_bytes, nullptr);
  if (scan.run()) return Need{0};
  if (scan.cursor().error()) return std::move(*scan.cursor().error());
  const uint64_t generous = std::max(kFirstRequest, kGrowth * uint64_t{prefix.size()});
  return Need{std::min(file_bytes, std::max(scan.cursor().missing(), generous))};
}

Result<Index> read_index(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  Index index;
  HeaderScan scan(prefix, file_bytes, &index);
  if (!scan.run()) {
    if (scan.cursor().error()) return std::move(*scan.cursor().error());
    return error_at(ErrorCode::file_truncated, "", "the header needs at least {} bytes; got {}",
                    scan.cursor().missing(), uint64_t{prefix.size()});
  }
  TRY_VOID(check_unique(index));
  TRY(alignment, alignment_of(index.metadata));
  index.alignment = alignment;
  TRY_VOID(place_tensors(index, scan.cursor().at(), file_bytes));
  return index;
}

}  // namespace wasmquant::gguf
