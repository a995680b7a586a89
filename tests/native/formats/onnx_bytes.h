// ONNX models byte by byte, as wrong as a test wants them.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/onnx.h"
#include "formats/onnx/protobuf.h"

namespace test_files {

/// A message, field by field.
struct Message {
  std::string out;

  Message& number(uint32_t field, uint64_t value) {
    wasmquant::protobuf::append_field(out, field, value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    wasmquant::protobuf::append_field(out, field, value);
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.out); }
  Message& bytes(std::string_view value) {
    out += value;
    return *this;
  }
};

inline std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
inline std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 37) % 101) / 50.0f - 1.0f;
  return values;
}

/// TensorProto without its values.
inline Message tensor_of(std::string_view name, std::vector<uint64_t> shape, uint64_t type = 1) {
  Message tensor;
  for (const uint64_t dimension : shape) tensor.number(1, dimension);
  return tensor.number(2, type).text(8, name);
}
inline Message raw_tensor(std::string_view name, std::vector<uint64_t> shape) {
  size_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return tensor_of(name, std::move(shape)).text(9, floats(ramp(count)));
}
inline Message external_tensor(std::string_view name, std::vector<uint64_t> shape, std::string_view location,
                               std::string_view offset = "0") {
  return tensor_of(name, std::move(shape))
      .message(13, Message().text(1, "location").text(2, location))
      .message(13, Message().text(1, "offset").text(2, offset))
      .number(14, 1);
}
inline Message attribute_of(std::string_view name, int64_t value) {
  return Message().text(1, name).number(3, static_cast<uint64_t>(value)).number(20, 2);
}
inline Message node_of(std::string_view op_type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                       std::string_view name = "") {
  Message node;
  for (const auto& input : inputs) node.text(1, input);
  for (const auto& output : outputs) node.text(2, output);
  return node.text(3, name).text(4, op_type);
}
inline Message constant_of(std::string_view output, const Message& tensor) {
  return node_of("Constant", {}, {std::string(output)})
      .message(5, Message().text(1, "value").message(5, tensor).number(20, 4));
}
inline Message value_of(std::string_view name) { return Message().text(1, name); }
inline std::string model_of(const Message& graph, uint64_t opset = 17, uint64_t ir_version = 8) {
  return Message().number(1, ir_version).message(7, graph).message(8, Message().text(1, "").number(2, opset)).out;
}

/// Feeds random parts of what is asked for; the reader sees nothing else. `fed`: how many bytes it took.
inline wasmquant::Result<wasmquant::onnx::Model> read_onnx(const std::string& file, uint32_t seed = 1,
                                                           uint64_t* fed = nullptr) {
  std::mt19937 random(seed);
  auto skeleton = std::make_unique<wasmquant::onnx::Skeleton>(file.size());
  uint64_t sum = 0;
  for (auto need = skeleton->need(); need.bytes > 0; need = skeleton->need()) {
    if (need.offset + need.bytes > file.size())
      return wasmquant::Error{wasmquant::ErrorCode::state_invalid, "need", "asks for what is not there"};
    // A host may give less than was asked for, but not less than a field's head where there is more.
    const uint64_t least = std::min<uint64_t>(need.bytes, wasmquant::protobuf::kMaxHeadBytes);
    const uint64_t count = least + random() % (need.bytes - least + 1);
    const std::vector<uint8_t> piece(file.begin() + static_cast<std::ptrdiff_t>(need.offset),
                                     file.begin() + static_cast<std::ptrdiff_t>(need.offset + count));
    auto status = skeleton->feed(piece);
    if (!status) return std::move(status.error());
    sum += count;
  }
  if (fed != nullptr) *fed = sum;
  return wasmquant::onnx::read_model(std::move(skeleton));
}

}  // namespace test_files
