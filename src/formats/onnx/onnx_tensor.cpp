// TensorProto: 1 dims, 2 data_type, 3 segment, 4 float_data, 5 int32_data, 6 string_data, 7 int64_data, 8 name,
// 9 raw_data, 10 double_data, 11 uint64_data, 13 external_data, 14 data_location.
#include "formats/onnx/onnx_tensor.h"

#include <algorithm>

#include "core/json.h"
#include "core/message.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

constexpr uint32_t kText = 8;  // DataType STRING

// By data type: bits per element, and the typed field for its values.
struct TypeRow {
  uint8_t bits, field;
};
constexpr TypeRow kTypes[] = {
    {0, 0},                                          // UNDEFINED
    {32, 4},                                         // FLOAT
    {8, 5},   {8, 5},    {16, 5}, {16, 5}, {32, 5},  // UINT8, INT8, UINT16, INT16, INT32
    {64, 7},                                         // INT64
    {0, 6},                                          // STRING
    {8, 5},   {16, 5},                               // BOOL, FLOAT16
    {64, 10},                                        // DOUBLE
    {32, 11}, {64, 11},                              // UINT32, UINT64
    {64, 4},  {128, 10},                             // COMPLEX64, COMPLEX128
    {16, 5},                                         // BFLOAT16
    {8, 5},   {8, 5},    {8, 5},  {8, 5},            // FLOAT8 variants
    {4, 5},   {4, 5},    {4, 5},                     // UINT4, INT4, FLOAT4E2M1
    {8, 5},                                          // FLOAT8E8M0
    {2, 5},   {2, 5},                                // UINT2, INT2
};

Error invalid_at(uint64_t byte, const char* message) {
  return error_at(ErrorCode::file_invalid, text_of("byte {}", byte), message);
}

Status add_dimension(uint64_t value, uint64_t at, Tensor& tensor) {
  if (static_cast<int64_t>(value) < 0) return invalid_at(at, "a dimension is negative");
  if (tensor.shape.size() == kMaxRank) return invalid_at(at, "a tensor of more than 64 dimensions");
  tensor.shape.push_back(value);
  return {};
}

// External data: {location, offset, length} as strings.
struct External {
  std::string_view location;
  uint64_t offset = 0, length = ~uint64_t{0};
  bool is_given = false;
};

Status read_number(std::string_view text, uint64_t at, uint64_t& number) {
  number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || number > (uint64_t{1} << 59))
      return invalid_at(at, "offset or length of external data is not a number");
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  if (text.empty()) return invalid_at(at, "offset or length of external data is empty");
  return {};
}

Status read_entry(const Skeleton& skeleton, const Range& message, External& external) {
  std::string_view key, value;
  for (Fields f(skeleton, message); f.next();)
    if (f.field.number == 1 || f.field.number == 2)
      TRY_VOID(read_text(skeleton, f.field, f.field.number == 1 ? key : value));
  external.is_given = true;
  if (key == "location") external.location = value;
  if (key == "offset") return read_number(value, message.begin, external.offset);
  if (key == "length") return read_number(value, message.begin, external.length);
  return {};
}

class TensorReader {
 public:
  TensorReader(const Skeleton& skeleton, const Range& message, Tensor& tensor)
      : skeleton_(skeleton), message_(message), tensor_(tensor) {
    tensor_.message = message;
  }

  Status run() {
    for (Fields f(skeleton_, message_); f.next();) TRY_VOID(take(f.field));
    if (tensor_.data_type >= std::size(kTypes) || tensor_.data_type == 0)
      return error_at(ErrorCode::file_invalid, where(), "tensors of type {} are not supported", tensor_.data_type);
    TRY_VOID(measure());
    return is_external_ ? place_external() : place_inside();
  }

 private:
  std::string where() const {
    return tensor_.name.empty() ? text_of("byte {}", message_.begin) : shown_name(tensor_.name);
  }
  Error invalid(const char* message, uint64_t a = 0, uint64_t b = 0) const {
    return error_at(ErrorCode::file_invalid, where(), message, a, b);
  }

  Status take(const Field& field) {
    switch (field.number) {
      case 1:
        return dims(field);
      case 2:
        TRY_VOID(expect(field, Wire::varint));
        tensor_.data_type = static_cast<uint32_t>(std::min<uint64_t>(field.value, 255));
        return {};
      case 3:
        return invalid("a tensor in segments, which no tool reads");
      case 8:
        return read_text(skeleton_, field, tensor_.name);
      case 13:
        TRY_VOID(expect(field, Wire::bytes));
        tensor_.data.push_back(field.whole);
        return read_entry(skeleton_, field.payload, external_);
      case 14:
        TRY_VOID(expect(field, Wire::varint));
        tensor_.data.push_back(field.whole);
        is_external_ = field.value == 1;
        return {};
      case 4:
      case 5:
      case 6:
      case 7:
      case 9:
      case 10:
      case 11:
        if (value_field_ != 0 && value_field_ != field.number)
          return invalid("values in fields {} and {}; one kind is allowed", value_field_, field.number);
        if (field.number == 9) TRY_VOID(expect(field, Wire::bytes));
        value_field_ = field.number;
        tensor_.data.push_back(field.whole);
        values_ = field.payload;
        is_packed_ = field.wire == Wire::bytes;
        ++value_fields_;
        return {};
      default:
        return {};
    }
  }

  Status dims(const Field& field) {
    if (field.wire == Wire::varint) return add_dimension(field.value, field.whole.begin, tensor_);
    TRY_VOID(expect(field, Wire::bytes));
    if (skeleton_.is_cut_out(field.payload)) return invalid("a tensor of more than 64 dimensions");
    const std::string_view text = skeleton_.text(field.payload);
    std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    while (!rest.empty()) {
      uint64_t value = 0;
      uint32_t used = 0;
      if (protobuf::read_varint(rest, value, used) != protobuf::Outcome::read)
        return invalid("its dimensions are not varints");
      TRY_VOID(add_dimension(value, field.whole.begin, tensor_));
      rest = rest.subspan(used);
    }
    return {};
  }

  // Elements and bytes both stay below 2^62.
  Status measure() {
    constexpr uint64_t kLimit = uint64_t{1} << 55;
    elements_ = 1;
    for (const uint64_t dimension : tensor_.shape)
      if (dimension == 0) elements_ = 0;
    if (elements_ != 0)
      for (const uint64_t dimension : tensor_.shape) {
        if (dimension > kLimit / elements_)
          return error_at(ErrorCode::file_too_large, where(), "the tensor has 2^55 elements or more");
        elements_ *= dimension;
      }
    bytes_ = (elements_ * kTypes[tensor_.data_type].bits + 7) / 8;
    return {};
  }

  Status place_external() {
    if (value_field_ != 0) return invalid("it has both inline data and external data");
    if (tensor_.data_type == kText) return invalid("texts cannot be external data");
    if (!is_inside_folder(external_.location))
      return error_at(ErrorCode::file_invalid, where(), "its data is in {q}; only files in the model's folder are read",
                      external_.location);
    if (external_.length != ~uint64_t{0} && external_.length != bytes_)
      return invalid("its external data has {} bytes, but type and shape need {}", external_.length, bytes_);
    if (external_.offset > kMaxExternalBytes || bytes_ > kMaxExternalBytes - external_.offset)
      return error_at(ErrorCode::file_too_large, where(), "its external data end beyond byte {}", kMaxExternalBytes);
    tensor_.location = external_.location;
    tensor_.encoding = Encoding::bytes;
    tensor_.begin = external_.offset;
    tensor_.end = external_.offset + bytes_;
    return {};
  }

  Status place_inside() {
    if (external_.is_given) return invalid("it names external data, but its data_location is not EXTERNAL");
    if (value_field_ == 0) {
      if (elements_ > 0) return invalid("{} elements are declared, but none are stored", elements_);
      return {};
    }
    if (value_field_ == 9) return place_raw();
    const TypeRow type = kTypes[tensor_.data_type];
    if (value_field_ != type.field)
      return invalid("values of its type {} are not stored in field {}", tensor_.data_type, value_field_);
    const bool has_fixed_size = value_field_ == 4 || value_field_ == 10;
    tensor_.encoding = value_field_ == 6 || !is_packed_ || value_fields_ > 1 ? Encoding::scattered
                       : has_fixed_size                                      ? Encoding::bytes
                                                                             : Encoding::varints;
    if (tensor_.encoding == Encoding::bytes && values_.bytes() != bytes_)
      return invalid("{} bytes of data, but type and shape need {}", values_.bytes(), bytes_);
    // int32_data packs two 4-bit or four 2-bit elements per number; every number takes at least a byte.
    const uint64_t per_number = value_field_ == 5 && type.bits < 8 ? 8 / type.bits : 1;
    if (tensor_.encoding == Encoding::varints && values_.bytes() < elements_ / per_number)
      return invalid("{} bytes of varints cannot be {} elements", values_.bytes(), elements_);
    tensor_.begin = values_.begin;
    tensor_.end = values_.end;
    return {};
  }

  Status place_raw() {
    if (tensor_.data_type == kText) return invalid("texts cannot be raw data");
    if (value_fields_ > 1) return invalid("raw data appear twice");
    if (values_.bytes() != bytes_)
      return invalid("{} bytes of data, but type and shape need {}", values_.bytes(), bytes_);
    tensor_.encoding = Encoding::bytes;
    tensor_.begin = values_.begin;
    tensor_.end = values_.end;
    return {};
  }

  const Skeleton& skeleton_;
  const Range message_;
  Tensor& tensor_;
  External external_;
  bool is_external_ = false, is_packed_ = false;
  uint64_t value_field_ = 0, value_fields_ = 0;
  Range values_;
  uint64_t elements_ = 0, bytes_ = 0;
};

}  // namespace

uint32_t bits_of(uint32_t data_type) noexcept { return data_type < std::size(kTypes) ? kTypes[data_type].bits : 0; }

std::optional<StorageDtype> weight_dtype_of(uint32_t data_type) noexcept {
  if (data_type == uint32_t{static_cast<uint8_t>(DataType::float32)}) return StorageDtype::F32;
  if (data_type == uint32_t{static_cast<uint8_t>(DataType::float16)}) return StorageDtype::F16;
  if (data_type == uint32_t{static_cast<uint8_t>(DataType::bfloat16)}) return StorageDtype::BF16;
  return std::nullopt;
}

Status expect(const Field& field, Wire wire) {
  if (field.wire == wire) return {};
  return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin),
                  "field {} has wire type {} instead of {}", field.number, static_cast<uint32_t>(field.wire),
                  static_cast<uint32_t>(wire));
}

Status read_text(const Skeleton& skeleton, const Field& field, std::string_view& text) {
  TRY_VOID(expect(field, Wire::bytes));
  if (skeleton.is_cut_out(field.payload))
    return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin),
                    "a name of {} bytes; the limit is {}", field.payload.bytes(), kMaxTextBytes);
  text = skeleton.text(field.payload);
  if (!json::is_utf8(text)) return invalid_at(field.whole.begin, "a name is not valid UTF-8");
  return {};
}

Status read_tensor(const Skeleton& skeleton, const Range& message, Tensor& tensor) {
  return TensorReader(skeleton, message, tensor).run();
}

bool is_inside_folder(std::string_view location) noexcept {
  if (location.empty() || location.front() == '/') return false;
  for (const char c : location)
    if (c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20) return false;
  for (size_t at = 0; at <= location.size();) {
    const size_t end = std::min(location.find('/', at), location.size());
    const std::string_view part = location.substr(at, end - at);
    if (part.empty() || part == "..") return false;
    at = end + 1;
  }
  return true;
}

Status decode_varints(std::span<const uint8_t> bytes, std::span<uint16_t> bits, std::string_view name) {
  for (uint16_t& number : bits) {
    uint64_t value = 0;
    uint32_t used = 0;
    if (protobuf::read_varint(bytes, value, used) != protobuf::Outcome::read || value > 0xFFFF)
      return error_at(ErrorCode::file_invalid, shown_name(name), "its int32_data has numbers of more than 16 bits");
    number = static_cast<uint16_t>(value);
    bytes = bytes.subspan(used);
  }
  if (!bytes.empty())
    return error_at(ErrorCode::file_invalid, shown_name(name), "its int32_data has more elements than its shape");
  return {};
}

}  // namespace wasmquant::onnx
