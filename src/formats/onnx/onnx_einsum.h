// Einsum with a matrix or a batch of matrices as one of its two operands: "bij,jk->bik" is MatMul with a weight [in, out].
#pragma once
#include <string_view>

#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// What Einsum does with operand `input`, [in, out] or a batch of those: einsum_in_out, einsum_out_in, or other if it is
/// no product with a weight (a diagonal, several axes of features, one operand, three).
Use einsum_use(std::string_view equation, uint32_t input);

}  // namespace wasmquant::onnx
