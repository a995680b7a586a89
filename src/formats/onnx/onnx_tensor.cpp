// A tensor's type and shape say how many bytes its values take, and the fields that are there where they are.
#include "formats/onnx/onnx_tensor.h"

#include <iterator>

#include "core/message.h"
#include "formats/onnx/onnx_tensor_fields.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

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

// Where the values of a tensor are, once its fields are read.
class TensorPlacement {
 public:
  TensorPlacement(const TensorFields& fields, Tensor& tensor) : fields_(fields), tensor_(tensor) {}

  Status run() {
    if (tensor_.data_type == 0) return error_at(ErrorCode::file_invalid, where(), "its element type is UNDEFINED");
    TRY_VOID(measure());
    // Newer types are kept as they are: only the file tells how many bytes their values take.
    if (tensor_.data_type >= std::size(kTypes)) return place_unknown();
    return fields_.is_external ? place_external() : place_inside();
  }

 private:
  std::string where() const { return place_of(tensor_); }
  Error invalid(const char* message, uint64_t a = 0, uint64_t b = 0) const {
    return error_at(ErrorCode::file_invalid, where(), message, a, b);
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
    bytes_ = (elements_ * bits_of(tensor_.data_type) + 7) / 8;
    return {};
  }

  Status place_unknown() {
    if (fields_.is_external) {
      bytes_ = fields_.external.length;
      if (bytes_ == ~uint64_t{0})
        return invalid("its external data has no length, and the size of its element type {} is unknown",
                       tensor_.data_type);
      return place_external();
    }
    if (fields_.external.is_given) return invalid("it names external data, but its data_location is not EXTERNAL");
    if (fields_.value_field == 0)
      return elements_ > 0 ? invalid("{} elements are declared, but none are stored", elements_) : Status();
    bytes_ = fields_.values.bytes();
    if (fields_.value_field == 9) return place_raw();
    tensor_.encoding = Encoding::scattered;
    tensor_.begin = fields_.values.begin;
    tensor_.end = fields_.values.end;
    return {};
  }

  Status place_external() {
    if (fields_.value_field != 0) return invalid("it has both inline data and external data");
    if (tensor_.data_type == kText) return invalid("texts cannot be external data");
    if (!is_inside_folder(fields_.external.location))
      return error_at(ErrorCode::file_invalid, where(), "its data is in {q}; only files in the model's folder are read",
                      fields_.external.location);
    if (fields_.external.length != ~uint64_t{0} && fields_.external.length != bytes_)
      return invalid("its external data has {} bytes, but type and shape need {}", fields_.external.length, bytes_);
    if (fields_.external.offset > kMaxExternalBytes || bytes_ > kMaxExternalBytes - fields_.external.offset)
      return error_at(ErrorCode::file_too_large, where(), "its external data end beyond byte {}", kMaxExternalBytes);
    tensor_.location = fields_.external.location;
    tensor_.encoding = Encoding::bytes;
    tensor_.begin = fields_.external.offset;
    tensor_.end = fields_.external.offset + bytes_;
    return {};
  }

  Status place_inside() {
    if (fields_.external.is_given) return invalid("it names external data, but its data_location is not EXTERNAL");
    if (fields_.value_field == 0) {
      if (elements_ > 0) return invalid("{} elements are declared, but none are stored", elements_);
      return {};
    }
    if (fields_.value_field == 9) return place_raw();
    const TypeRow type = kTypes[tensor_.data_type];
    if (fields_.value_field != type.field)
      return invalid("values of its type {} are not stored in field {}", tensor_.data_type, fields_.value_field);
    const bool has_fixed_size = fields_.value_field == 4 || fields_.value_field == 10;
    tensor_.encoding = fields_.value_field == 6 || !fields_.is_packed || fields_.value_fields > 1 ? Encoding::scattered
                       : has_fixed_size                                                           ? Encoding::bytes
                                                                                                  : Encoding::varints;
    if (tensor_.encoding == Encoding::bytes && fields_.values.bytes() != bytes_)
      return invalid("{} bytes of data, but type and shape need {}", fields_.values.bytes(), bytes_);
    // int32_data packs two 4-bit or four 2-bit elements per number; every number takes at least a byte.
    const uint64_t per_number = fields_.value_field == 5 && type.bits < 8 ? 8 / type.bits : 1;
    if (tensor_.encoding == Encoding::varints && fields_.values.bytes() < elements_ / per_number)
      return invalid("{} bytes of varints cannot be {} elements", fields_.values.bytes(), elements_);
    tensor_.begin = fields_.values.begin;
    tensor_.end = fields_.values.end;
    return {};
  }

  Status place_raw() {
    if (tensor_.data_type == kText) return invalid("texts cannot be raw data");
    if (fields_.value_fields > 1) return invalid("raw data appear twice");
    if (fields_.values.bytes() != bytes_)
      return invalid("{} bytes of data, but type and shape need {}", fields_.values.bytes(), bytes_);
    tensor_.encoding = Encoding::bytes;
    tensor_.begin = fields_.values.begin;
    tensor_.end = fields_.values.end;
    return {};
  }

  const TensorFields& fields_;
  Tensor& tensor_;
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

Status read_tensor(const Skeleton& skeleton, const Range& message, Tensor& tensor) {
  tensor.message = message;
  TRY(fields, read_tensor_fields(skeleton, tensor));
  return TensorPlacement(fields, tensor).run();
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
