// The fields of a TensorProto, before they are compared with its type and shape.
#pragma once
#include <string>
#include <string_view>

#include "formats/onnx/onnx_tensor.h"

namespace wasmquant::onnx {

/// External data: {location, offset, length} as strings.
struct ExternalData {
  std::string_view location;
  uint64_t offset = 0, length = ~uint64_t{0};
  bool is_given = false;
};

struct TensorFields {
  ExternalData external;
  bool is_external = false;                    // data_location
  bool is_packed = false;                      // the values are one field
  uint64_t value_field = 0, value_fields = 0;  // the number of the fields with values, and how many there are
  Range values;                                // of the last
};

/// Fills the tensor's name, type, shape and fields of data from `tensor.message`. Errors: file-invalid.
Result<TensorFields> read_tensor_fields(const Skeleton& skeleton, Tensor& tensor);

/// The tensor's name for errors, or the byte it begins at.
std::string place_of(const Tensor& tensor);

}  // namespace wasmquant::onnx
