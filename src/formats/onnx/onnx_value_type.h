// Element type and shape that the graph declares for an input.
//   ValueInfoProto 1 name, 2 type · TypeProto 1 tensor_type · TypeProto.Tensor 1 elem_type, 2 shape
//   TensorShapeProto 1 dim · Dimension 1 dim_value, 2 dim_param
#pragma once
#include <cstdint>
#include <string_view>

#include "core/list.h"
#include "formats/onnx/onnx_skeleton.h"

namespace wasmquant::onnx {

/// A size, or the name of a dynamic one; neither: undeclared.
struct Dimension {
  int64_t size = -1;
  std::string_view name;
};

/// Element type and shape of a graph's value, as declared.
struct ValueType {
  uint32_t data_type = 0;  // TensorProto.DataType; 0: not a tensor, or undeclared
  bool has_shape = false;
  List<Dimension> shape;
};

/// `value`: a ValueInfoProto with its tag. Malformed or cut-out parts count as undeclared: types are only displayed.
ValueType value_type_of(const Skeleton& skeleton, const Range& value);

}  // namespace wasmquant::onnx
