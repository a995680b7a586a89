// The algorithms of pre_quant_opt_config and algo_config, in order, whatever the dialect calls them. Configs of Quark's
// Brevitas extension name classes (spec aihwkit-brevitas 3); they become the same rows:
//   Preprocess              merge_batch_norm and cle, by its own switches
//   ActivationEqualization  activationequalization, folded into the layer before: files have no place for the
//                           multiplication that Brevitas puts before a layer
//   GPTQ, GPFQ, GPFA2Q, BiasCorrection   gptq, gpfq (which GPFA2Q falls back to since 0.12), biascorrection
#pragma once
#include <string>
#include <string_view>

#include "config/spec/spec.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant {

struct AskedAlgorithm {
  json::Value value;        // {"name": of tables/algorithms.def, options}
  std::string where;        // JSON pointer of what asks for it
  bool is_implied = false;  // part of Preprocess: where a model has nothing for it, nothing is wrong
};

List<AskedAlgorithm> asked_algorithms(const Config& config);

inline constexpr std::string_view kMergeBatchNorm = "merge_batch_norm";
/// The row that asks for batch norms to be folded; null: none does.
const AskedAlgorithm* find_merge(const List<AskedAlgorithm>& algorithms) noexcept;
/// The rotation whose R4 the runtime has to finish; null: none.
const AskedAlgorithm* find_online_rotation(const List<AskedAlgorithm>& algorithms) noexcept;

}  // namespace wasmquant
