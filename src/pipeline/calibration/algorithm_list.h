// The algorithms of pre_quant_opt_config and algo_config, in order, for every dialect. Classes of Quark's
// Brevitas extension map to the same rows (tools/brevitas/brevitas_algorithms.cpp).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/rounding/gptq.h"
#include "config/spec/algorithm_table.h"
#include "config/spec/spec.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant {

/// One entry of a config's lists, in Quark's words.
struct RequestedAlgorithm {
  json::Value value;        // {"name": as in tables/algorithms.def, options}
  std::string where;        // JSON pointer of the entry
  bool is_implied = false;  // part of Preprocess: finding nothing to change is not an error
};

List<RequestedAlgorithm> requested_algorithms(const Config& config);

/// The method that a row of algorithms.def calls `name`; none for a name that is unknown or needs no calibration.
std::optional<CalibrationMethod> method_named(std::string_view name) noexcept;
/// Whether the method changes weights before they are rounded, so that it goes with any rounding: it rotates, equalizes
/// or scales.
constexpr bool precedes_rounding(CalibrationMethod method) noexcept {
  return info_of(method).kind <= AlgorithmKind::scales;
}
/// Whether weights can be stored in GGUF's block types after the method: gpfq needs scales that are known before, and
/// these types are not made for the biases that correction adds to.
constexpr bool goes_with_blocks(CalibrationMethod method) noexcept {
  return info_of(method).kind <= AlgorithmKind::rounds && method != CalibrationMethod::gpfq;
}
/// The methods that go with blocks, by the first name of each: "rotation, cle, smoothquant, awq and gptq", for messages.
std::string names_with_blocks();

/// The options of an algorithm that rounds columns, with the defaults that this library gives what is left out.
GptqOptions gptq_options_of(const json::Value& algorithm, CalibrationMethod method);
/// The algorithm that chooses which columns of the layer share a scale, because desc_act is on and static_groups off;
/// null if there is none.
const RequestedAlgorithm* find_group_chooser(const List<RequestedAlgorithm>& algorithms,
                                             std::string_view layer) noexcept;

inline constexpr std::string_view kMergeBatchNorm = "merge_batch_norm";
const RequestedAlgorithm* find_merge(const List<RequestedAlgorithm>& algorithms) noexcept;
/// The rotation whose R4 the runtime must complete, or null.
const RequestedAlgorithm* find_online_rotation(const List<RequestedAlgorithm>& algorithms) noexcept;

}  // namespace wasmquant
