// A parser of the header's dict, which accepts the three keys and nothing else.
#include "formats/numpy/npy.h"

#include <optional>
#include <string>

#include "core/json.h"
#include "core/message.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor_name.h"

namespace wasmquant::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kVersionEnd = 8;    // magic and version
constexpr size_t kMaxDimensions = 64;  // NumPy's

Error invalid(std::string message) { return {ErrorCode::file_invalid, "header", std::move(message)}; }

struct Descriptor {
  char kind, bytes;
  StorageDtype dtype;
};
constexpr Descriptor kDescriptors[] = {
    {'f', '4', StorageDtype::F32}, {'f', '2', StorageDtype::F16}, {'f', '8', StorageDtype::F64},
    {'i', '1', StorageDtype::I8},  {'i', '2', StorageDtype::I16}, {'i', '4', StorageDtype::I32},
    {'i', '8', StorageDtype::I64}, {'u', '1', StorageDtype::U8},  {'u', '2', StorageDtype::U16},
    {'u', '4', StorageDtype::U32}, {'u', '8', StorageDtype::U64}, {'b', '1', StorageDtype::BOOL},
    {'c', '8', StorageDtype::C64}};

// "<f4": byte order, kind, bytes per element.
Result<StorageDtype> dtype_of(std::string_view descr) {
  const std::string_view type = descr.empty() ? descr : descr.substr(1);
  if (type.size() == 2 && std::string_view("<|=>").find(descr[0]) != std::string_view::npos) {
    for (const Descriptor& row : kDescriptors) {
      if (row.kind != type[0] || row.bytes != type[1]) continue;
      if (descr[0] != '>' || row.bytes == '1') return row.dtype;
      return error_at(ErrorCode::dtype_unsupported, "descr", "is '{}', big-endian; save array.astype('<{}') instead",
                      descr, type);
    }
  }
  const char* hint = "save the array as float32, float16 or an integer dtype";
  if (type.starts_with('O')) hint = "objects are pickled Python, which is never run; save an array of numbers";
  if (type.starts_with('V')) hint = "NumPy has no name for bfloat16 and float8; save array.astype('float32')";
  return error_at(ErrorCode::dtype_unsupported, "descr", "is '{}'; {}", shown_name(descr), hint);
}

// Parses the dict literal, limited to the grammar that numpy.save writes.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Status parse(StoredTensor& tensor) {
    if (!take('{')) return wrong("a dict");
    while (!take('}')) {
      const auto key = string();
      if (!key || !take(':')) return wrong("a key");
      if (*key == "descr" && !has_descr_) {
        const char next = peek();
        if (next == '[' || next == '{' || next == '(')
          return error_at(ErrorCode::dtype_unsupported, "descr",
                          "is a record of fields; save each field as a separate array");
        const auto descr = string();
        if (!descr) return wrong("a string");
        TRY(dtype, dtype_of(*descr));
        tensor.dtype = dtype;
        has_descr_ = true;
      } else if (*key == "fortran_order" && !has_order_) {
        is_fortran_ = word("True");
        if (!is_fortran_ && !word("False")) return wrong("True or False");
        has_order_ = true;
      } else if (*key == "shape" && !has_shape_) {
        TRY_VOID(shape(tensor.shape));
        has_shape_ = true;
      } else {
        return invalid(
            text_of("has the key '{}'; it must have descr, fortran_order and shape, each once", shown_name(*key)));
      }
      if (!take(',') && peek() != '}') return wrong("a comma or }");
    }
    peek();
    if (at_ != text_.size()) return wrong("nothing more");
    if (!has_descr_ || !has_order_ || !has_shape_) return invalid("lacks one of descr, fortran_order and shape");
    size_t wide = 0;
    for (const uint64_t dimension : tensor.shape) wide += dimension > 1;
    if (is_fortran_ && wide > 1)
      return error_at(ErrorCode::dtype_unsupported, "fortran_order",
                      "is True: the array is stored column by column; save numpy.ascontiguousarray(array) instead");
    return {};
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    peek();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  std::optional<std::string_view> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = text_.substr(at_ + 1, end - at_ - 1);
    if (found.find('\\') != std::string_view::npos) return std::nullopt;
    at_ = end + 1;
    return found;
  }
  Status shape(std::vector<uint64_t>& out) {
    if (!take('(')) return wrong("a tuple");
    bool has_comma = true;
    while (!take(')')) {
      if (!has_comma) return wrong("a comma");
      if (out.size() == kMaxDimensions) return invalid(text_of("has more than {} dimensions", kMaxDimensions));
      uint64_t value = 0;
      const char first = peek();
      if (first < '0' || first > '9') return wrong("a whole number from 0 on");
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        const auto digit = static_cast<uint64_t>(text_[at_] - '0');
        if (value > (~uint64_t{0} - digit) / 10) return wrong("a dimension below 2^64");
        value = 10 * value + digit;
      }
      out.push_back(value);
      has_comma = take(',');
    }
    if (out.size() == 1 && !has_comma) return wrong("a tuple, which has a comma");
    return {};
  }
  Error wrong(const char* expected) const {
    return invalid(text_of("needs {} at character {}, as numpy.save writes it", expected, at_));
  }

  std::string_view text_;
  size_t at_ = 0;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false, is_fortran_ = false;
};

// End of the header; 0: unknown until `wanted` bytes are available.
struct HeaderPlace {
  uint64_t begin = 0, end = 0;
};
Result<HeaderPlace> place_of_header(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  if (!looks_like_npy(prefix)) return error_at(ErrorCode::file_invalid, "byte 0", "does not begin as .npy files do");
  const uint64_t begin = kVersionEnd + (prefix.size() > 6 && prefix[6] > 1 ? 4u : 2u);
  if (file_bytes < begin)
    return error_at(ErrorCode::file_truncated, "byte 0", "the file has {} bytes, its header begins at {}", file_bytes,
                    begin);
  if (prefix.size() < begin) return HeaderPlace{begin, 0};
  if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
    return error_at(ErrorCode::file_invalid, "byte 6", "is version {}.{}; there are 1.0, 2.0 and 3.0",
                    uint32_t{prefix[6]}, uint32_t{prefix[7]});
  uint64_t length = 0;
  for (uint64_t i = kVersionEnd; i < begin; ++i) length |= uint64_t{prefix[i]} << (8 * (i - kVersionEnd));
  if (length > kMaxHeaderBytes)
    return error_at(ErrorCode::file_too_large, "byte 8", "the header length is {}; the limit is {}", length,
                    kMaxHeaderBytes);
  if (length > file_bytes - begin)
    return error_at(ErrorCode::file_truncated, "byte 8", "the header length is {}, but only {} bytes follow", length,
                    file_bytes - begin);
  return HeaderPlace{begin, begin + length};
}

}  // namespace

bool looks_like_npy(std::span<const uint8_t> prefix) noexcept {
  return prefix.size() >= kMagic.size() &&
         std::string_view(reinterpret_cast<const char*>(prefix.data()), kMagic.size()) == kMagic;
}

Result<uint64_t> need(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  TRY(place, place_of_header(prefix, file_bytes));
  const uint64_t wanted = place.end == 0 ? place.begin : place.end;
  return prefix.size() < wanted ? wanted : uint64_t{0};
}

Result<StoredTensor> read_tensor(std::span<const uint8_t> prefix, uint64_t file_bytes) {
  TRY(place, place_of_header(prefix, file_bytes));
  if (place.end == 0 || prefix.size() < place.end)
    return error_at(ErrorCode::file_truncated, "byte 0", "only {} bytes of the header were read", prefix.size());
  const std::string_view text(reinterpret_cast<const char*>(prefix.data() + place.begin), place.end - place.begin);
  if (!json::is_utf8(text)) return invalid("is not UTF-8 text");
  StoredTensor tensor;
  TRY_VOID(HeaderParser(text).parse(tensor));
  TRY(bytes, safetensors::tensor_bytes(tensor.dtype, tensor.shape, "shape"));
  if (bytes != file_bytes - place.end)
    return error_at(bytes > file_bytes - place.end ? ErrorCode::file_truncated : ErrorCode::file_invalid, "header",
                    "dtype and shape need {} bytes, but {} follow", bytes, file_bytes - place.end);
  tensor.begin = place.end;
  tensor.end = file_bytes;
  return tensor;
}

}  // namespace wasmquant::npy
