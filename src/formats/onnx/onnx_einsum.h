// Einsum with a matrix as one of its two operands: "bij,jk->bik" is MatMul with a weight [in, out].
#pragma once
#include <string_view>

#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// What Einsum does with operand `input`, a matrix: einsum_in_out, einsum_out_in, or other if it is no product with a
/// weight (a diagonal, a batch, one operand, three).
Use einsum_use(std::string_view equation, uint32_t input) noexcept;

}  // namespace wasmquant::onnx
