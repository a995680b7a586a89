// Quark's own export ("real_quantized", pack_method "reorder"). For a Linear [out, in]:
//   int4 uint4 int2   per_group: transposed. int4, uint4: I32 [in, ceil(out/8)] of eight nibbles in the order
//                     0 2 4 6 1 3 5 7; int2: I32 [in, out]. Scale [in/group, out]; zero point like the codes
//                     per_channel, per_tensor: I32 [out, ceil(in/8)], scale [out] or []
//   int8 uint8        per_group transposed bytes [in, out]; otherwise [out, in] as they are
//   int3              U8 [out, in*3/8], a little-endian bit stream along each row; scale not transposed
//   fp8               native, not transposed; fp8_e5m3, which has no storage dtype, as U8
//   fp4, fp6          U8 [out, in*bits/8], a little-endian bit stream along each row
//   mx int8           I8 [out, in]
// Scales of floats and mx are never transposed: [out, groups] or [out blocks, in blocks], e8m0 and e5m3 as U8, e4m3 as
// F8_E4M3 with the float32 scale of the tensor in weight_scale_2. Of two stages that both make codes, weight_scale is
// the first's and weight_scale_2 (weight_zero_point_2) the second's. Zero points are written for every other integer
// dtype, zeros when symmetric. `float` scales of weights of 16 bits are of their dtype, and computed in it; of integers
// per tensor they are computed in it and stored as F32. Source: AMD Quark export, spec sections 6.1-6.6.
//   mx6 mx9 bfp16     U8 [out, bytes of the row's blocks], packing.h. Quark cannot store them; the layout is this
// library's
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// Writes and reads the layouts above.
class Quark final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "quark"; }
  FormatTraits traits() const noexcept override {
    return {.holds_activation_scales = true, .declares_rotation = true, .cache = CacheStorage::outputs};
  }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool stores_input_scales(const Stages&) const override { return true; }
  bool choose_activation_storage(const WeightDescription& weight, ActivationStorage& storage) const override;
  json::Value quantization_config(const Config& config, const List<LayerPlan>& layers,
                                  const families::ModelFamily& family) const override;
};

}  // namespace wasmquant
