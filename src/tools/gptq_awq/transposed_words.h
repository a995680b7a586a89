// AWQ and GPTQ: weights of Linear layers [out, in] as transposed int32 words with float16 scales.
//   awq    P.qweight I32 [in, out/8], nibbles of a word in order 0 2 4 6 1 3 5 7; P.qzeros I32 [in/group, out/8] in
//          the same order; P.scales F16 [in/group, out]. uint4 with zero points, one group size for all layers.
//   gptq   2, 3, 4 or 8 bits, as bit streams in words, first code in the low bits (3 bits: 32 codes in 3 words):
//          P.qweight I32 [in * bits / 32, out], streams along in; P.qzeros I32 [in/group, out * bits / 32], along out;
//          P.scales F16 [in/group, out]; P.g_idx I32 [in], the group of each input: arbitrary in files with desc_act,
//          otherwise ascending.
//          Version 1 (checkpoint_format "gptq"): intN symmetric, codes + 2^(N-1), zero points stored less 1.
//          Version 2 ("gptq_v2"): uintN, zero points as they are.
// Source: AutoAWQ's GEMM version; AutoGPTQ and GPTQModel, which add 1 to stored zero points.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// AWQ's layout.
class Awq final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "awq"; }
  FormatTraits traits() const noexcept override { return {}; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool stores_input_scales(const Stages&) const override { return false; }
  Status check(const List<LayerPlan>& layers) const override;
  json::Value quantization_config(const Config& config, const List<LayerPlan>& layers,
                                  const families::ModelFamily& family) const override;
};

/// GPTQ's layouts, version 1 and 2.
class Gptq final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "gptq"; }
  FormatTraits traits() const noexcept override { return {.holds_group_index = true}; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool stores_input_scales(const Stages&) const override { return false; }
  Status check(const List<LayerPlan>& layers) const override;
  json::Value quantization_config(const Config& config, const List<LayerPlan>& layers,
                                  const families::ModelFamily& family) const override;
};

}  // namespace wasmquant
