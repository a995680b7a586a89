// Field numbers are those of onnx.proto.
#include "onnx_graph/onnx_nodes.h"

#include <bit>

#include "core/message.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/protobuf.h"
#include "numeric/half.h"

namespace wasmquant::conversion {

using protobuf::append_field;

void Pieces::add(const Segment& segment) {
  if (segment.bytes == 0) return;
  bytes_ += segment.bytes;
  if (!segments_.empty()) {  // merge adjacent ranges
    Segment& last = segments_.back();
    const bool goes_on = last.kind == segment.kind && last.source == segment.source &&
                         segment.kind != Segment::Kind::component && last.begin + last.bytes == segment.begin;
    if (goes_on) {
      last.bytes += segment.bytes;
      return;
    }
  }
  segments_.push_back(segment);
}

void Pieces::add(const Pieces& other) {
  for (const Segment& segment : other.segments_) add(segment);
}

void Pieces::add(std::string& literals, std::string_view text) {
  const uint64_t begin = literals.size();
  literals += text;
  add({Segment::Kind::literal, 0, 0, begin, text.size()});
}

void Pieces::add_field(std::string& literals, uint32_t number, const Pieces& inner) {
  std::string head;
  protobuf::append_head(head, number, inner.bytes());
  add(literals, head);
  add(inner);
}

NodeBytes::NodeBytes(std::string_view op_type, std::string_view domain, std::string_view name,
                     std::string_view suffix) {
  if (!name.empty()) {
    protobuf::append_head(bytes_, 3, name.size() + suffix.size());
    bytes_ += name;
    bytes_ += suffix;
  }
  append_field(bytes_, 4, op_type);
  if (!domain.empty()) append_field(bytes_, 7, domain);
}

NodeBytes& NodeBytes::input(std::string_view name) {
  append_field(bytes_, 1, name);
  return *this;
}

NodeBytes& NodeBytes::output(std::string_view name) {
  append_field(bytes_, 2, name);
  return *this;
}

// AttributeProto: 1 name, 2 f, 3 i, 5 t, 8 ints, 20 type (1: FLOAT, 2: INT, 4: TENSOR, 7: INTS)
NodeBytes& NodeBytes::attribute(std::string_view name, int64_t value) {
  std::string attribute;
  append_field(attribute, 1, name);
  append_field(attribute, 3, static_cast<uint64_t>(value));
  append_field(attribute, 20, uint64_t{2});
  append_field(bytes_, 5, attribute);
  return *this;
}

NodeBytes& NodeBytes::real(std::string_view name, float value) {
  constexpr char kTagOfFloat = 2 << 3 | static_cast<char>(protobuf::Wire::fixed32);
  std::string attribute;
  append_field(attribute, 1, name);
  attribute += kTagOfFloat;
  attribute += float_bytes(value, kFloat32);
  append_field(attribute, 20, uint64_t{1});
  append_field(bytes_, 5, attribute);
  return *this;
}

NodeBytes& NodeBytes::integers(std::string_view name, std::span<const int64_t> values) {
  std::string attribute;
  append_field(attribute, 1, name);
  for (const int64_t value : values) append_field(attribute, 8, static_cast<uint64_t>(value));
  append_field(attribute, 20, uint64_t{7});
  append_field(bytes_, 5, attribute);
  return *this;
}

NodeBytes& NodeBytes::tensor(std::string_view name, std::string_view message) {
  std::string attribute;
  append_field(attribute, 1, name);
  append_field(attribute, 5, message);
  append_field(attribute, 20, uint64_t{4});
  append_field(bytes_, 5, attribute);
  return *this;
}

std::string tensor_head(std::string_view name, uint32_t data_type, std::span<const uint64_t> shape) {
  std::string out;
  for (const uint64_t dimension : shape) append_field(out, 1, dimension);
  append_field(out, 2, uint64_t{data_type});
  append_field(out, 8, name);
  return out;
}

std::string float_bytes(float value, uint32_t data_type) {
  auto bits = std::bit_cast<uint32_t>(value);
  const bool is_float32 = data_type == kFloat32;
  if (!is_float32) bits = data_type == static_cast<uint32_t>(onnx::DataType::float16) ? half_of(value) : bits >> 16;
  return {reinterpret_cast<const char*>(&bits), is_float32 ? size_t{4} : size_t{2}};
}

std::string external_fields(std::string_view location, uint64_t offset, uint64_t length) {
  std::string out;
  const auto entry = [&](std::string_view key, std::string_view value) {
    std::string pair;
    append_field(pair, 1, key);
    append_field(pair, 2, value);
    append_field(out, 13, pair);
  };
  entry("location", location);
  entry("offset", text_of("{}", offset));
  entry("length", text_of("{}", length));
  append_field(out, 14, uint64_t{1});
  return out;
}

std::string added_outputs(std::span<const std::string> names) {
  std::string graph, out;
  for (const std::string& name : names) {
    std::string value;
    append_field(value, 1, name);
    append_field(graph, 12, value);
  }
  append_field(out, 7, graph);
  return out;
}

}  // namespace wasmquant::conversion
