// Types of graph inputs: what is said, what is left open, what is broken.
#include "formats/onnx/onnx_value_type.h"

#include <doctest/doctest.h>

#include "formats/onnx_bytes.h"

using namespace wasmquant;
using namespace test_files;

namespace {

struct Read {
  onnx::Model model;
  onnx::ValueType type;
};

Read read_value(const Message& value) {
  auto model = read_onnx(model_of(Message().message(11, value)));
  REQUIRE(bool(model));
  onnx::ValueType type = onnx::value_type_of(*model->skeleton, model->graphs[0].inputs[0].whole);
  return {std::move(*model), std::move(type)};
}

Message tensor_type(uint64_t data_type, const Message& shape) {
  return Message().message(1, Message().number(1, data_type).message(2, shape));
}

}  // namespace

TEST_CASE("onnx value types: sizes, names and open dimensions in their order") {
  const Message shape = Message()
                            .message(1, Message().number(1, 3))
                            .message(1, Message().text(2, "width"))
                            .message(1, Message())
                            .message(1, Message().number(1, 0));
  const Read read = read_value(value_of("x").message(2, tensor_type(7, shape)));
  CHECK(read.type.data_type == 7);
  REQUIRE(read.type.shape.size() == 4);
  CHECK(read.type.shape[0].size == 3);
  CHECK(read.type.shape[1].name == "width");
  CHECK(read.type.shape[2].size == -1);
  CHECK(read.type.shape[2].name.empty());
  CHECK(read.type.shape[3].size == 0);
}

TEST_CASE("onnx value types: a scalar has a shape, a value without one has none") {
  const Read scalar = read_value(value_of("x").message(2, tensor_type(1, Message())));
  CHECK(scalar.type.has_shape);
  CHECK(scalar.type.shape.empty());
  const Read open = read_value(value_of("x").message(2, Message().message(1, Message().number(1, 1))));
  CHECK(open.type.data_type == 1);
  CHECK(!open.type.has_shape);
  CHECK(read_value(value_of("x")).type.data_type == 0);
  const Read sequence = read_value(value_of("x").message(2, Message().message(4, tensor_type(1, Message()))));
  CHECK(sequence.type.data_type == 0);
}

TEST_CASE("onnx value types: broken ones have no text, and reading ends where they break") {
  const Message cut = Message().bytes("\x0a\x7f\x08");              // a field longer than its message
  const Message tag = Message().bytes("\x0b\x0b");                  // a wire type that is none
  const Message varint = Message().bytes(std::string(12, '\xff'));  // more than 64 bits
  for (const Message& broken : {cut, tag, varint}) {
    const Read read = read_value(value_of("x").message(2, broken));
    CHECK(read.type.data_type == 0);
    CHECK(read_value(value_of("x").message(2, tensor_type(1, broken))).type.shape.empty());
  }
  const Message latin = Message().message(1, Message().text(2, "\xe4"));
  const Read read = read_value(value_of("x").message(2, tensor_type(1, latin)));
  REQUIRE(read.type.shape.size() == 1);
  CHECK(read.type.shape[0].name.empty());
}
