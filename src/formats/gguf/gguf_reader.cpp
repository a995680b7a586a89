// GGUF reader. One scan serves `need` and `read_index`: it walks the prefix and ends with a result, an error, or the
// number of missing bytes. Declared counts and lengths are checked against the rest of the file before allocating.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/json.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/gguf/gguf.h"
#include "formats/tensor_name.h"

namespace wasmquant::gguf {
namespace {

constexpr uint64_t kFixedBytes = 24;       // magic, version, two counts
constexpr uint64_t kFirstRequest = 65536;  // enough for metadata without a vocabulary
constexpr uint64_t kGrowth = 4;
// Minimum sizes: key of one byte, type, value of one byte; name, dimension count, type, offset.
constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1, kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;

std::string at_byte(uint64_t byte) { return text_of("byte {}", byte); }

class HeaderScan {
 public:
  /// `index` null: walk only.
  HeaderScan(std::span<const uint8_t> prefix, uint64_t file_bytes, Index* index)
      : data_(reinterpret_cast<const char*>(prefix.data())),
        prefix_bytes_(std::min<uint64_t>(prefix.size(), file_bytes)),
        file_bytes_(file_bytes),
        index_(index) {}

  /// False: error, or more bytes needed.
  bool run() { return fixed_part() && keys() && tensors(); }

  std::optional<Error>& error() { return error_; }
  uint64_t missing() const { return wanted_; }
  /// Offset just after the tensor list.
  uint64_t end() const { return at_; }

 private:
  // Fails at `where_`. Formatting numbers of one type here makes each call a tenth of the WebAssembly code.
  bool fail(ErrorCode code, const char* pattern, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
    error_ = error_at(code, where_, pattern, a, b, c);
    return false;
  }
  uint64_t left() const { return file_bytes_ - at_; }

  // The next `bytes` bytes; null if they are not in the prefix, or not in the file.
  const char* take(uint64_t bytes) {
    if (bytes > left()) {
      fail(ErrorCode::file_truncated, "the header needs {} more bytes, but the file has {} (byte {})", bytes, left(),
           at_);
      return nullptr;
    }
    const uint64_t end = at_ + bytes;
    if (end > kMaxHeaderBytes) {
      fail(ErrorCode::file_too_large, "the header needs more than {} bytes", kMaxHeaderBytes);
      return nullptr;
    }
    if (end > prefix_bytes_) {
      wanted_ = end;
      return nullptr;
    }
    const char* here = data_ + at_;
    at_ = end;
    return here;
  }
  template <class T>
  bool take_number(T& value) {
    const char* here = take(sizeof(T));
    if (here != nullptr) std::memcpy(&value, here, sizeof(T));
    return here != nullptr;
  }
  bool take_text(std::string_view& text, uint64_t max_bytes) {
    const uint64_t begin = at_;
    uint64_t length = 0;
    if (!take_number(length)) return false;
    if (length > max_bytes)
      return fail(ErrorCode::file_too_large, "a text of {} bytes; the limit is {} (byte {})", length, max_bytes, begin);
    if (length > left())
      return fail(ErrorCode::file_truncated, "a text of {} bytes, but the file ends after {} (byte {})", length, left(),
                  begin);
    const char* here = take(length);
    text = {here, here == nullptr ? 0 : static_cast<size_t>(length)};
    return here != nullptr;
  }

  bool fixed_part() {
    where_ = at_byte(0);
    if (file_bytes_ < kFixedBytes)
      return fail(ErrorCode::file_truncated, "a GGUF header has at least {} bytes, but the file has {}", kFixedBytes,
                  file_bytes_);
    const char* magic = take(4);
    if (magic == nullptr) return false;
    if (std::memcmp(magic, "GGUF", 4) != 0)
      return fail(ErrorCode::format_unknown, "a GGUF file begins with the letters GGUF");
    uint32_t version = 0;
    where_ = at_byte(at_);
    if (!take_number(version)) return false;
    if ((version & 0xFFFF) == 0 && version != 0)
      return fail(ErrorCode::file_invalid, "the bytes of the version are swapped: big-endian files are not read");
    if (version < 2 || version > kVersion)
      return fail(ErrorCode::file_invalid, "GGUF version {}; versions 2 and 3 are read", version);
    if (index_ != nullptr) index_->version = version;
    return take_count(tensor_count_, kMaxTensors, kLeastTensorBytes) &&
           take_count(key_count_, kMaxKeys, kLeastKeyBytes);
  }

  // Reads the count of tensors (byte 8) or keys (byte 16).
  bool take_count(uint64_t& count, uint64_t limit, uint64_t least_bytes) {
    where_ = at_byte(at_);
    if (!take_number(count)) return false;
    if (static_cast<int64_t>(count) < 0) return fail(ErrorCode::file_invalid, "a count is negative");
    if (count > limit) return fail(ErrorCode::file_too_large, "a count of {}; the limit is {}", count, limit);
    if (count > left() / least_bytes)
      return fail(ErrorCode::file_truncated, "a count of {} does not fit the {} bytes that follow", count, left());
    return true;
  }

  bool keys() {
    for (uint64_t i = 0; i < key_count_; ++i) {
      where_ = at_byte(at_);
      std::string_view key;
      if (!take_text(key, kMaxKeyBytes)) return false;
      if (key.empty() || !json::is_utf8(key))
        return fail(ErrorCode::file_invalid,
                    key.empty() ? "a metadata key is empty" : "a metadata key is not valid UTF-8");
      if (!value(key)) return false;
    }
    return true;
  }

  bool value(std::string_view key) {
    where_ = shown_name(key);
    ValueType type{};
    if (!take_type(type)) return false;
    const uint64_t begin = at_;
    ValueType element = type;
    uint64_t count = 1;
    if (type == ValueType::array && (!take_type(element) || !take_array_count(element, count))) return false;
    if (element == ValueType::text) {
      std::string_view text;
      for (uint64_t i = 0; i < count; ++i)
        if (!take_text(text, kMaxTextBytes)) return false;
    } else if (take(count * fixed_bytes(element)) == nullptr) {
      return false;
    }
    if (index_ != nullptr)
      index_->metadata.append({std::string(key), type, std::string(data_ + begin, static_cast<size_t>(at_ - begin))});
    return true;
  }

  bool take_type(ValueType& type) {
    const uint64_t begin = at_;
    uint32_t number = 0;
    if (!take_number(number)) return false;
    if (number >= kValueTypeCount)
      return fail(ErrorCode::file_invalid, "value type {} does not exist; the last is {} (byte {})", number,
                  kValueTypeCount - 1, begin);
    type = static_cast<ValueType>(number);
    return true;
  }

  bool take_array_count(ValueType element, uint64_t& count) {
    const uint64_t begin = at_;
    if (element == ValueType::array) return fail(ErrorCode::file_invalid, "an array of arrays (byte {})", begin - 4);
    if (!take_number(count)) return false;
    if (count > kMaxArrayItems)
      return fail(ErrorCode::file_too_large, "an array of {} items; the limit is {} (byte {})", count, kMaxArrayItems,
                  begin);
    const uint64_t least_bytes = element == ValueType::text ? 8 : fixed_bytes(element);
    if (count > left() / least_bytes)
      return fail(ErrorCode::file_truncated, "an array of {} items does not fit the {} bytes that follow (byte {})",
                  count, left(), begin);
    return true;
  }

  bool tensors() {
    for (uint64_t i = 0; i < tensor_count_; ++i)
      if (!tensor()) return false;
    return true;
  }

  bool tensor() {
    where_ = at_byte(at_);
    std::string_view name;
    if (!take_text(name, kMaxNameBytes)) return false;
    if (name.empty() || !json::is_utf8(name) || name.find('\0') != name.npos)
      return fail(ErrorCode::file_invalid, "a tensor name must be valid UTF-8 without NUL, and not empty");
    where_ = name;
    uint32_t rank = 0;
    if (!take_number(rank)) return false;
    if (rank > kMaxDimensions)
      return fail(ErrorCode::file_invalid, "{} dimensions; the limit is {} (byte {})", rank, kMaxDimensions, at_ - 4);
    uint64_t dimensions[kMaxDimensions];
    for (uint32_t d = 0; d < rank; ++d) {
      if (!take_number(dimensions[d])) return false;
      if (dimensions[d] > kMaxDimension)
        return fail(ErrorCode::file_invalid, "dimension {} is not in 0 to {} (byte {})", d, kMaxDimension, at_ - 8);
    }
    uint32_t id = 0;
    uint64_t offset = 0;
    if (!take_number(id)) return false;
    const auto type = ggml_type_of(id);
    if (!type)
      return fail(ErrorCode::dtype_unsupported, "tensor type {} is unknown or was removed from GGUF (byte {})", id,
                  at_ - 4);
    if (!take_number(offset)) return false;
    if (index_ == nullptr) return true;
    Tensor& tensor = index_->tensors.emplace_back();
    tensor.name = name;
    tensor.type = *type;
    for (uint32_t d = rank; d-- > 0;) tensor.shape.push_back(dimensions[d]);
    tensor.begin = offset;
    return true;
  }

  const char* data_;
  uint64_t prefix_bytes_, file_bytes_, at_ = 0, wanted_ = 0;
  uint64_t tensor_count_ = 0, key_count_ = 0;
  std::string where_;  // current key or tensor, or "byte N"
  Index* index_;
  std::optional<Error> error_;
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
  if (scan.error()) return std::move(*scan.error());
  const uint64_t generous = std::max(kFirstRequest, kGrowth * uint64_t{prefix.size()});
  return Need{std::min(file_bytes, std::max(scan.missing(), generous))};
}

Result<Index> read_index(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  Index index;
  HeaderScan scan(prefix, file_bytes, &index);
  if (!scan.run()) {
    if (scan.error()) return std::move(*scan.error());
    return error_at(ErrorCode::file_truncated, "", "the header needs at least {} bytes; got {}", scan.missing(),
                    uint64_t{prefix.size()});
  }
  TRY_VOID(check_unique(index));
  TRY(alignment, alignment_of(index.metadata));
  index.alignment = alignment;
  TRY_VOID(place_tensors(index, scan.end(), file_bytes));
  return index;
}

}  // namespace wasmquant::gguf
