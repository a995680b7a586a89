// The algorithms of pre_quant_opt_config and algo_config, in order, for every dialect. Class names of Quark's Brevitas
// extension (spec aihwkit-brevitas 3) map to the same rows:
//   Preprocess              merge_batch_norm and cle, by its own switches
//   ActivationEqualization  activationequalization, folded into the layer before, because files cannot store the
//                           multiplication that Brevitas inserts before a layer
//   GPTQ, GPFQ, GPFA2Q, BiasCorrection   gptq, gpfq (which GPFA2Q falls back to since 0.12), biascorrection
#pragma once
#include <string>
#include <string_view>

#include "config/spec/spec.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant {

struct AskedAlgorithm {
  json::Value value;        // {"name": as in tables/algorithms.def, options}
  std::string where;        // JSON pointer of the entry
  bool is_implied = false;  // part of Preprocess: finding nothing to change is not an error
};

List<AskedAlgorithm> asked_algorithms(const Config& config);

inline constexpr std::string_view kMergeBatchNorm = "merge_batch_norm";
const AskedAlgorithm* find_merge(const List<AskedAlgorithm>& algorithms) noexcept;
/// The rotation whose R4 the runtime must complete, or null.
const AskedAlgorithm* find_online_rotation(const List<AskedAlgorithm>& algorithms) noexcept;

}  // namespace wasmquant
