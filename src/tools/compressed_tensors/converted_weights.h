// Compressed weights that transformers converts while it loads (families/conversions.h). Its loader decompresses what it
// collects for a conversion of tensors called weight, and does that by one scheme for the whole model:
//   experts, joined   the scheme of the group with a target "re:...experts...", else of the first group. Words of
//                     symmetric integers, mxfp4, and fp8 with a scale per channel or tensor are decompressed; an fp8
//                     scheme lets plain weights pass, any other drops them
//   split             the parts of a weight are split one by one, which fits only bytes with a scale per row; if the
//                     layer is not quantized, the loader ends with an error for any file
// Source: transformers 5.24, quantizers/base.py (update_weight_conversions), integrations/compressed_tensors.py.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "families/conversions.h"

namespace wasmquant {

/// The target of experts' groups: every matrix of single experts.
inline constexpr std::string_view kSingleExperts = "re:(.*\\.)?experts\\.\\d+\\..*";

/// Why transformers cannot load these layers together; nullopt if it can.
std::optional<LoaderLimit> conversion_limit(const List<LayerPlan>& layers, const families::ModelFamily& family);

/// The release of transformers that these conversions need, as pip spells it; empty if there are none.
std::string_view release_for_conversions(const List<LayerPlan>& layers, const families::ModelFamily& family);

/// Whether the loader must be told that plain weights pass its conversions: some are plain, and no group is fp8.
bool has_plain_conversions(const List<LayerPlan>& layers, const families::ModelFamily& family);

/// Whether experts that are quantized have one spec, so that one pattern can name them all.
bool have_experts_one_spec(const List<LayerPlan>& layers, const families::ModelFamily& family);

/// Patterns of the modules that a conversion makes.
List<std::string> target_patterns(const families::Conversion& row);

}  // namespace wasmquant
