#include "ops/ops.h"

#include <utility>

namespace conformance {

Op op_named(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kOps[] = {
      {"decode", decode},
      {"cast", cast},
      {"cast_saturate", cast_saturate},
      {"cast_nonsaturating", cast_nonsaturating},
      {"encode_e8m0_scale", encode_e8m0_scale},
      {"round", round},
      {"int_quant", quantize_observed},
      {"int_qparams", quantize_observed},
      {"fp8_quant", quantize_observed},
      {"int_quant_given", quantize_given},
      {"fp8_quant_given", quantize_given},
      {"observe_batches", observe_batches},
      {"pack4", pack_words_of_nibbles},
      {"pack_int3", pack_int3},
      {"pack_float", pack_float},
      {"export_weight", export_weight},
      {"mx_quant", mx_quant},
      {"group_float", group_float},
      {"nvfp4", nvfp4},
      {"bfp_prime", bfp_prime},
      {"bfp16", bfp16},
      {"smooth_scales", smooth_scales_of},
      {"gptq", gptq_weight},
  };
  for (const auto& [known, op] : kOps)
    if (known == name) return op;
  return nullptr;
}

}  // namespace conformance
