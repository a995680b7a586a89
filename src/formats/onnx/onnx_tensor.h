// Reads one TensorProto and checks it against its shape.
#pragma once
#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// Fills `tensor` from its message; `message` is its place in the file. Errors: file-invalid, file-too-large.
Status read_tensor(const Skeleton& skeleton, const Range& message, Tensor& tensor);

/// A string that must be kept whole. Errors: file-invalid if it is longer than kMaxTextBytes or not UTF-8.
Status read_text(const Skeleton& skeleton, const Field& field, std::string_view& text);

/// Errors: file-invalid if a known field has another wire type.
Status expect(const Field& field, protobuf::Wire wire);

}  // namespace wasmquant::onnx
