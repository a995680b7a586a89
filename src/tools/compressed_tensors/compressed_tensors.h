// compressed-tensors (vLLM, transformers): pack-quantized, int-quantized and float-quantized weights.
//   pack-quantized   P.weight_packed I32 [out, ceil(in*bits/32)] of q + 2^(bits-1), P.weight_scale [out, groups],
//                    P.weight_shape I64 [2], asymmetric: P.weight_zero_point I32 [ceil(out*bits/32), groups]
//   int-quantized    P.weight I8 [out, in], P.weight_scale [out, 1] or [1],
//                    asymmetric: P.weight_zero_point I8 like the scale; for int8 with quantized inputs or per tensor, and
//                    for classes of transformers that read P.weight while they load
//   float-quantized  P.weight F8_E4M3 [out, in], P.weight_scale [out, 1] or [1]; per block: [out blocks, in blocks] of
//                    whole blocks: vLLM and llm-compressor also cut the last block of rows, which transformers cannot
//                    decompress
//   mxfp4-pack-quantized, nvfp4-pack-quantized
//                    P.weight_packed U8 [out, in/2], first code in the low nibble
//                    mxfp4: P.weight_scale U8 [out, in/32] e8m0
//                    nvfp4: P.weight_scale F8_E4M3 [out, in/16], P.weight_global_scale F32 [1], the reciprocal of the
//                    tensor's scale
//   mxfp8-quantized  P.weight F8_E4M3 [out, in], P.weight_scale U8 [out, in/32] e8m0
// Source: vllm-project/compressed-tensors; widths 2, 4 and 8 have the same layout in all its releases.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// Writes and reads the layouts above.
class CompressedTensors final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "compressed-tensors"; }
  FormatTraits traits() const noexcept override {
    return {.holds_activation_scales = true, .holds_split_layers = true, .cache = CacheStorage::attention};
  }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  /// int8 and fp8_e4m3 per tensor or per token (per_channel along the last axis), fp8_e4m3 also per group of a token.
  bool stores_input_scales(const Stages& inputs) const override;
  /// int8, uint8 and fp8_e4m3 per tensor: P.input_scale [1] like weight_scale, asymmetric: P.input_zero_point I8 [1].
  bool choose_activation_storage(const WeightDescription& weight, ActivationStorage& storage) const override;
  /// fp8_e4m3 per tensor, static: what runtimes read.
  json::Value cache_scheme(const Stages& stages) const override;
  /// `ignore` names every unquantized Linear module of the loaded model under both of its names, towers and experts by
  /// one pattern each if all of their layers are unquantized, and heads without a tensor because they are tied. Of
  /// several groups, that of the experts has a pattern; experts that are not quantized get a group of fp8, which
  /// `ignore` overrules, because transformers then lets them pass (converted_weights.h).
  json::Value quantization_config(const Config& config, const List<LayerPlan>& layers,
                                  const families::ModelFamily& family) const override;
};

}  // namespace wasmquant
