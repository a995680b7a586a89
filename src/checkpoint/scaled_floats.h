// Floats of 8 or 4 bits beside their scales, as models are published whose config.json says quant_method "fp8", or
// nothing: read, never written.
//   P.weight   F8_E4M3, F8_E5M2 or F4, [out, in]
//   a scale    P.weight_scale, P.weight_scale_inv or P.scale_weight: [] or [1]; [out] or [out, 1]; [out, in/group];
//   blocks
//              [ceil(out / b), ceil(in / b)], b = 128 in DeepSeek's. F32, F16, BF16, or F8_E8M0 (U8 in groups of 32).
// value = code * scale, under all three names. Source: DeepSeek-V3's weight_dequant, transformers' FineGrainedFP8.
#pragma once
#include <optional>

#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

class ScaledFloats final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "scaled-floats"; }
  bool is_read_only() const noexcept override { return true; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool holds_inputs(const Stages&) const override { return false; }
  json::Value quantization_config(const Config&, const List<LayerOutcome>&,
                                  const families::ModelFamily&) const override {
    return nullptr;
  }
};

/// Names of scales, after the layer's.
inline constexpr std::string_view kScaleNames[] = {"weight_scale", "weight_scale_inv", "scale_weight"};

/// What the shape and dtype of a scale say about a weight of that dtype and shape; nothing when they do not go
/// together. `block`: rows and columns of blocks, where config.json names them, else 0.
std::optional<QuantizationSpec> scaled_floats_spec(StorageDtype weight, const std::vector<uint64_t>& shape,
                                                   StorageDtype scale, const std::vector<uint64_t>& scale_shape,
                                                   const uint64_t (&block)[2]);

}  // namespace wasmquant
