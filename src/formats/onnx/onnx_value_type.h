// What the graph says of a value that goes into it: the type of its elements and its shape.
//   ValueInfoProto 1 name, 2 type · TypeProto 1 tensor_type · TypeProto.Tensor 1 elem_type, 2 shape
//   TensorShapeProto 1 dim · Dimension 1 dim_value, 2 dim_param
#pragma once
#include <cstdint>
#include <string_view>

#include "core/list.h"
#include "formats/onnx/onnx_skeleton.h"

namespace wasmquant::onnx {

/// A size, or the name of one that is known when the model runs; both empty: not said at all.
struct Dimension {
  int64_t size = -1;
  std::string_view name;
};

struct ValueType {
  uint32_t data_type = 0;  // TensorProto.DataType; 0: no tensor, or not said
  bool has_shape = false;
  List<Dimension> shape;
};

/// `value`: a ValueInfoProto with its tag. What is broken or too long to be kept is taken as not said: a type is told
/// to people, nothing is read by it.
ValueType value_type_of(const Skeleton& skeleton, const Range& value);

}  // namespace wasmquant::onnx
