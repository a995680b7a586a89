// Quark's own export ("real_quantized", pack_method "reorder"). For a Linear [out, in]:
//   int4 uint4 int2   per_group: transposed; int4/uint4 I32 [in, ceil(out/8)] of eight nibbles in order 0 2 4 6 1 3 5
//   7, int2 I32 [in, out];
//                     scale [in/group, out]; zero point like the codes.  per_channel, per_tensor: I32 [out,
//                     ceil(in/8)], scale [out] or [].
//   int8 uint8        per_group transposed bytes [in, out]; otherwise [out, in] as they are
//   int3              U8 [out, in*3/8], a little-endian bit stream along each row; scale not transposed
//   fp8               native, not transposed
// Zero points are written for every integer dtype, zeros when symmetric. Source: AMD Quark export, spec
// sections 6.1-6.6.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

class Quark final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "quark"; }
  Result<WeightLayout> layout(const WeightDescription& weight, const QuantizationSpec& spec) const override;
  json::Value quantization_config(const Config& config, const List<LayerOutcome>& layers) const override;
};

}  // namespace wasmquant
