// One TensorProto: what it holds and where, checked against its own shape.
#pragma once
#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// Fills everything of `tensor` that its message says; `message` is its place in the file. Errors: file-invalid,
/// file-too-large.
Status read_tensor(const Skeleton& skeleton, const Range& message, Tensor& tensor);

/// A text that must be there whole. Errors: file-invalid when it is longer than kMaxTextBytes or not UTF-8.
Status read_text(const Skeleton& skeleton, const Field& field, std::string_view& text);

/// Errors: file-invalid: a known field of another kind.
Status expect(const Field& field, protobuf::Wire wire);

}  // namespace wasmquant::onnx
