// Compressed weights that transformers converts while it loads (runtimes/transformers/conversions.h). Its loader decompresses what it
// collects for a conversion of tensors called weight, and does that by one scheme for the whole model:
//   experts, joined   the scheme of the group with a target "re:...experts...", else of the first group. Words of
//                     symmetric integers, mxfp4, and fp8 with a scale per channel or tensor are decompressed; an fp8
//                     scheme lets plain weights pass, any other drops them
//   split             the parts of a weight are split one by one, which fits only bytes with a scale per row; if the
//                     layer is not quantized, the loader ends with an error for any file
// Source: transformers 5.24, quantizers/base.py (update_weight_conversions), integrations/compressed_tensors.py.
#pragma once
#include <string>
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "runtimes/transformers/conversions.h"

namespace wasmquant {

/// The target of experts' groups: every matrix of single experts.
inline constexpr std::string_view kSingleExperts = "re:(.*\\.)?experts\\.\\d+\\..*";

/// Whether the loader passes plain weights on where the scheme is this one, of 8-bit floats.
bool passes_plain_weights(const QuantizationSpec& spec);

/// The first of the experts that the loader merges that is quantized, that is not, and that has another spec; null if none.
struct MergedExperts {
  const LayerPlan *quantized = nullptr, *plain = nullptr, *differing = nullptr;

  MergedExperts(const List<LayerPlan>& layers, const transformers::Conversions& conversions);
};

/// Whether the loader must be told that plain weights pass its conversions: some are plain, and no group is fp8.
bool has_plain_conversions(const List<LayerPlan>& layers, const families::ModelFamily& family);

/// Whether experts that are quantized have one spec, so that one pattern can name them all.
bool have_experts_one_spec(const List<LayerPlan>& layers, const families::ModelFamily& family);

/// Patterns of the modules that a conversion makes.
List<std::string> target_patterns(const transformers::Conversion& row);

}  // namespace wasmquant
