// Layouts of weights in ONNX models. onnx_graph/onnx_rewrite.h writes the nodes that read them.
//   mat_mul_n_bits        com.microsoft MatMulNBits, instead of MatMul or Gemm:
//                         X_Q4 U8 [N, blocks, block_size * bits / 8], low bits first along K, X_scales [N, blocks],
//                         X_zero_points U8 [N, ceil(blocks * bits / 8)] unless all are 2^(bits - 1). Blocks have 16,
//                         32, 64, 128 or 256 codes; a scale of longer groups, of a channel or of the tensor is repeated
//                         for each block; the last block of a row is padded with its zero point
//   dequantize_linear     DequantizeLinear, before any consumer: X_quantized in the weight's shape, X_scale [],
//                         [channels] or, in groups, the shape with the axis divided; X_zero_point like it unless all
//                         are 0. Codes of less than 8 bits: two or four a byte, low bits first
//   cast_and_scale        Cast, Sub of the zero point, Mul: 8 bits, the same, X_scale of channels [1, channels, 1 …]. It
//                         is computed once, when the model is loaded, and no runtime takes it for products of integers
//   integer_operator      MatMulInteger or ConvInteger on inputs quantized at run time: the same, X_scale of a
//                         convolution's channels [channels, 1, …]. Codes of a convolution are U8, int8 ones plus 128
//   gather_rows           Gather of codes, scales and zero points, instead of Gather from rows: X_Q8 U8 [rows, groups,
//                         group_size * bits / 8], X_scales [rows, groups, 1], X_zero_points U8 like them, a byte each,
//                         unless all are 2^(bits - 1); without groups a row is one, and a scale of the tensor is repeated
// Source: ContribOperators.md of onnxruntime, Operators.md of onnx; formats.md B.6.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// The operator that reads a quantized weight.
enum class OnnxForm : uint8_t { mat_mul_n_bits, dequantize_linear, cast_and_scale, integer_operator, gather_rows };
/// Whether the form gives the float values, for any node that reads them.
constexpr bool gives_values(OnnxForm form) noexcept {
  return form == OnnxForm::dequantize_linear || form == OnnxForm::cast_and_scale;
}
/// The name of its operator.
std::string_view name_of(OnnxForm form) noexcept;

/// The float weight to lay out.
struct OnnxWeight {
  std::string name;
  std::vector<uint64_t> shape;              // in the order of the model's bytes
  StorageDtype source = StorageDtype::F32;  // of the model's bytes
  StorageDtype type = StorageDtype::F32;    // of the values that the form's operator gives or multiplies with
  /// The first two dimensions are [in, out] instead of the configs' [out, in]: MatMul, Gemm without transB,
  /// ConvTranspose. Axes 0 and 1 of the spec are then exchanged.
  bool is_input_major = false;
  /// A batch of matrices, [..., in, out] or [..., out, in]: these are then the last two dimensions.
  bool is_batch = false;
  /// DequantizeLinear stores the matrix in the other order than the model.
  bool is_transposed = false;
  uint64_t block = 0;  // codes of a stored block, of mat_mul_n_bits and gather_rows; 0: as they are written
};

/// Layout of the weight under `spec`, whose ch_axis refers to [out, in, …] as in configs. mat_mul_n_bits: the layout of
/// [N, K], source_transposed if the model has [K, N]; matrices of integer_operator vice versa. Components are in the
/// order of the node's inputs; scales have the operator's type. Errors: format-unsupported, which lists what the form supports; those of granularity_of.
Result<WeightLayout> onnx_layout(OnnxForm form, const OnnxWeight& weight, const QuantizationSpec& spec);

/// The version of ONNX's own operators that a layout of this form needs; 0: any.
uint32_t onnx_opset_of(OnnxForm form, const WeightLayout& layout) noexcept;

}  // namespace wasmquant
