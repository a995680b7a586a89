#include "formats/onnx/onnx_value_type.h"

#include <span>

#include "core/json.h"
#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

// Iterates over a message outside the skeleton, up to the first malformed field.
struct Walk {
  std::string_view rest;
  protobuf::Head head = {};
  std::string_view payload = {};

  bool next() noexcept {
    if (rest.empty()) return false;
    const std::span bytes{reinterpret_cast<const uint8_t*>(rest.data()), rest.size()};
    if (protobuf::read_head(bytes, head) != protobuf::Outcome::read) return false;
    rest.remove_prefix(head.bytes);
    if (head.wire != Wire::bytes) return true;
    if (head.value > rest.size()) return false;
    payload = rest.substr(0, static_cast<size_t>(head.value));
    rest.remove_prefix(payload.size());
    return true;
  }
  bool is(uint32_t number, Wire wire) const noexcept { return head.number == number && head.wire == wire; }
};

Dimension dimension_of(std::string_view message) {
  Dimension out;
  for (Walk f{message}; f.next();) {
    if (f.is(1, Wire::varint)) out.size = static_cast<int64_t>(f.head.value);
    if (f.is(2, Wire::bytes) && json::is_utf8(f.payload)) out.name = f.payload;
  }
  return out;
}

void read_tensor_type(std::string_view message, ValueType& out) {
  for (Walk f{message}; f.next();) {
    if (f.is(1, Wire::varint) && f.head.value <= 255) out.data_type = static_cast<uint32_t>(f.head.value);
    if (!f.is(2, Wire::bytes)) continue;
    out.has_shape = true;
    for (Walk s{f.payload}; s.next() && out.shape.size() <= kMaxRank;)
      if (s.is(1, Wire::bytes)) out.shape.push_back(dimension_of(s.payload));
  }
}

}  // namespace

ValueType value_type_of(const Skeleton& skeleton, const Range& value) {
  ValueType out;
  for (Fields f(skeleton, skeleton.field(value.begin).payload); f.next();) {
    if (f.field.number != 2 || f.field.wire != Wire::bytes) continue;
    for (Walk type{skeleton.text(f.field.payload)}; type.next();)
      if (type.is(1, Wire::bytes)) read_tensor_type(type.payload, out);
  }
  return out;
}

}  // namespace wasmquant::onnx
