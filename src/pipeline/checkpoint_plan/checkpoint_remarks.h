// Remarks about what a checkpoint keeps as it is, counted while tensors are planned.
#pragma once
#include <string>
#include <string_view>

#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/list.h"
#include "pipeline/plan/output_planner.h"

namespace wasmquant {

/// Layers and tensors, each kind with its first one.
struct CheckpointRemarks {
  bool inputs_left_out = false;  // dynamic inputs that the format cannot describe
  CountWithExample static_left_out, input_groups_left_out, activations_alone;
  CountWithExample promoted;  // small floats whose new values are written as BF16
  CountWithExample omitted_with_others, regrouped, biases, routers, quantized_routers;
};

/// What texts name.
struct RemarkContext {
  const Config& config;
  std::string_view format;
  bool has_fallback;
  int64_t common_group;
};

// Texts of remarks that the planner adds where it finds them.
extern const char kPlainWeightHint[], kRotationRefused[], kRotationRemark[], kCacheGroupRemark[];

void add_activation_remarks(const CheckpointRemarks& found, const RemarkContext& context, List<Diagnostic>& out);
void add_weight_remarks(const CheckpointRemarks& found, const RemarkContext& context, List<Diagnostic>& out);

}  // namespace wasmquant
