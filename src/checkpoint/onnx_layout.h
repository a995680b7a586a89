// Weights as ONNX models hold them. Which nodes then read them is written by onnx_graph/onnx_rewrite.h.
//   mat_mul_n_bits        com.microsoft MatMulNBits, instead of MatMul or Gemm:
//                         X_Q4 U8 [N, groups, group_size * bits / 8], low bits first along K, X_scales [N, groups],
//                         X_zero_points U8 [N, ceil(groups * bits / 8)] unless all are 2^(bits - 1);
//                         the last group of a row is padded with its zero point
//   dequantize_linear     DequantizeLinear, before whatever node: X_quantized in the weight's shape, X_scale [],
//                         [channels] or, in groups, the shape with the axis divided; X_zero_point like it unless all
//                         are 0. Codes of less than 8 bits: two or four a byte, low bits first
//   integer_operator      MatMulInteger or ConvInteger on inputs quantized at run time: the same, X_scale of a
//                         convolution's channels [channels, 1, …]
//   gather_block_quantized  com.microsoft GatherBlockQuantized, instead of Gather from rows: X_Q4 U8 [rows, columns/2],
//                         X_scales [rows, groups], X_zero_points U8 [rows, ceil(groups / 2)] unless all are 8
// Source: ContribOperators.md of onnxruntime, Operators.md of onnx; formats.md B.6.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

enum class OnnxForm : uint8_t { mat_mul_n_bits, dequantize_linear, integer_operator, gather_block_quantized };
/// The name of its operator.
std::string_view name_of(OnnxForm form) noexcept;

struct OnnxWeight {
  std::string name;
  std::vector<uint64_t> shape;  // as the model has it
  StorageDtype source = StorageDtype::F32;
  /// The first two dimensions are [in, out], not [out, in] as in the weights that configs speak of: MatMul, Gemm
  /// without transB, ConvTranspose. Axes 0 and 1 of the spec then change places.
  bool swapped = false;
};

/// Layout of the weight under `spec`, whose ch_axis counts as configs do, on [out, in, …]. mat_mul_n_bits: the layout
/// is that of [N, K], and source_transposed where the model has [K, N]; matrices of integer_operator the other way
/// round. Components are in the order of the node's
/// inputs. Errors: format-unsupported, which says what the form can hold; those of granularity_of.
Result<WeightLayout> onnx_layout(OnnxForm form, const OnnxWeight& weight, const QuantizationSpec& spec);

/// The version of ONNX's own operators that a layout of this form needs; 0: any.
uint32_t onnx_opset_of(OnnxForm form, const WeightLayout& layout) noexcept;

}  // namespace wasmquant
