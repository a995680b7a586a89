// TensorProto: 1 dims, 2 data_type, 3 segment, 4 float_data, 5 int32_data, 6 string_data, 7 int64_data, 8 name,
// 9 raw_data, 10 double_data, 11 uint64_data, 13 external_data, 14 data_location.
#include "formats/onnx/onnx_tensor_fields.h"

#include <algorithm>

#include "core/json.h"
#include "core/message.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

Error invalid_at(uint64_t byte, const char* message) {
  return error_at(ErrorCode::file_invalid, text_of("byte {}", byte), message);
}

Status add_dimension(uint64_t value, uint64_t at, Tensor& tensor) {
  if (static_cast<int64_t>(value) < 0) return invalid_at(at, "a dimension is negative");
  if (tensor.shape.size() == kMaxRank) return invalid_at(at, "a tensor of more than 64 dimensions");
  tensor.shape.push_back(value);
  return {};
}

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

Status read_entry(const Skeleton& skeleton, const Range& message, ExternalData& external) {
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

class TensorFieldReader {
 public:
  TensorFieldReader(const Skeleton& skeleton, Tensor& tensor) : skeleton_(skeleton), tensor_(tensor) {}

  Result<TensorFields> run() {
    for (Fields f(skeleton_, tensor_.message); f.next();) TRY_VOID(take(f.field));
    return out_;
  }

 private:
  Error invalid(const char* message, uint64_t a = 0, uint64_t b = 0) const {
    return error_at(ErrorCode::file_invalid, place_of(tensor_), message, a, b);
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
        return read_entry(skeleton_, field.payload, out_.external);
      case 14:
        TRY_VOID(expect(field, Wire::varint));
        tensor_.data.push_back(field.whole);
        out_.is_external = field.value == 1;
        return {};
      case 4:
      case 5:
      case 6:
      case 7:
      case 9:
      case 10:
      case 11:
        if (out_.value_field != 0 && out_.value_field != field.number)
          return invalid("values in fields {} and {}; one kind is allowed", out_.value_field, field.number);
        if (field.number == 9) TRY_VOID(expect(field, Wire::bytes));
        out_.value_field = field.number;
        tensor_.data.push_back(field.whole);
        out_.values = field.payload;
        out_.is_packed = field.wire == Wire::bytes;
        ++out_.value_fields;
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

  const Skeleton& skeleton_;
  Tensor& tensor_;
  TensorFields out_;
};

}  // namespace

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

std::string place_of(const Tensor& tensor) {
  return tensor.name.empty() ? text_of("byte {}", tensor.message.begin) : shown_name(tensor.name);
}

Result<TensorFields> read_tensor_fields(const Skeleton& skeleton, Tensor& tensor) {
  return TensorFieldReader(skeleton, tensor).run();
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

}  // namespace wasmquant::onnx
