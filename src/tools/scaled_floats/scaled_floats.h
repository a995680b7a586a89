// 8- or 4-bit floats with scales, as in published models whose config.json has quant_method "fp8" or none: read only.
//   P.weight   F8_E4M3, F8_E5M2 or F4 [out, in]; F4 also as U8 [out, in/2], the first code in the low nibble
//              and as I8 under F8_E8M0 in groups of 32
//   a scale    P.weight_scale, P.weight_scale_inv, P.scale_weight, P.qscale_weight or P.scale: [] or [1]; [out] or
//              [out, 1]; [out, in/group]; blocks [ceil(out / b), ceil(in / b)], b = 128 in DeepSeek's, also as
//              [blocks, 1, blocks, 1]. F32, F16, BF16, or F8_E8M0 (U8 in groups of 32).
//   experts    a parameter P [E, out, in] with P_scale or P_scale_inv, the scales of its matrices one after the other
//   int8       P.weight I8 with a scale per tensor or row, where P.comfy_quant says int8_tensorwise
//   NVFP4      F4 with P.weight_scale F8_E4M3 [out, in/16] under another scale, F32 [] or [1]: P.weight_scale_2, by
//              which it is multiplied, or P.weight_global_scale, by which it is divided
// value = code * scale, under all names; of NVFP4 code * (scale * second scale), each rounded to float32. Source:
// DeepSeek-V3's weight_dequant, DeepSeek-V4's
// inference/convert.py (cast_e2m1fn_to_e4m3fn); transformers' FineGrainedFP8; comfy-kitchen, tensor/int8.py; Model-Optimizer, NVFP4QTensor.dequantize;
// compressed-tensors, nvfp4_pack_quantized.
#pragma once
#include <optional>

#include "checkpoint/read_only_format.h"

namespace wasmquant {

/// Reads the layouts above.
class ScaledFloats final : public ReadOnlyFormat {
 public:
  std::string_view name() const noexcept override { return "scaled-floats"; }
  /// `weight.stored`: {"reciprocal": boolean}, whether NVFP4's second scale is a divisor; or null.
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
};

/// Suffixes of scales after the layer's name.
inline constexpr std::string_view kScaleNames[] = {"weight_scale", "weight_scale_inv", "scale_weight", "qscale_weight",
                                                   "scale"};

/// A weight as one matrix, with the scales that cover it.
struct ScaledMatrix {
  std::vector<uint64_t> shape, scale_shape;
  uint64_t block[2] = {};  // rows and columns of blocks, 0 if they are not known
};
/// Of a stack [experts, out, in] the matrices one below the other; any other shape as it is. nullopt if a block of
/// scales would reach into the next expert. `block`: what config.json states, else 0.
std::optional<ScaledMatrix> scaled_matrix(const std::vector<uint64_t>& shape, const std::vector<uint64_t>& scale_shape,
                                          const uint64_t (&block)[2]);

/// The spec that the shape and dtype of a scale imply for a weight of that dtype and shape; nullopt if they do not
/// match. `block`: rows and columns of blocks if config.json states them, else 0. F8_E4M3 scales are NVFP4's.
std::optional<QuantizationSpec> scaled_floats_spec(Dtype dtype, const std::vector<uint64_t>& shape, StorageDtype scale,
                                                   const std::vector<uint64_t>& scale_shape,
                                                   const uint64_t (&block)[2]);

}  // namespace wasmquant
