// Plans one round of a checkpoint in safetensors: the spec and layout of each tensor, then files.
#pragma once
#include <string>
#include <string_view>

#include "config/match/layer_type.h"
#include "config/resolve/resolve.h"
#include "core/list.h"
#include "families/expert_weights.h"
#include "families/module_path.h"
#include "pipeline/checkpoint_plan/cache_plan.h"
#include "pipeline/checkpoint_plan/checkpoint_remarks.h"
#include "pipeline/checkpoint_plan/expert_choice.h"
#include "pipeline/checkpoint_plan/file_layout.h"
#include "pipeline/checkpoint_plan/output_stacks.h"
#include "pipeline/checkpoint_plan/static_activation_plan.h"
#include "pipeline/model_index/expert_tensors.h"
#include "pipeline/model_index/storage_facts.h"
#include "pipeline/plan/output_format.h"
#include "pipeline/plan/output_planner.h"
#include "pipeline/plan/tied_head.h"
#include "pipeline/task/shared_scales.h"
#include "runtimes/loaders/fused_layer_schemes.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/transformers/conversions.h"
#include "runtimes/transformers/default_exclusions.h"
#include "runtimes/transformers/loader_names.h"
#include "runtimes/vllm/joined_layers.h"

namespace wasmquant {

/// What becomes of each tensor, with what is known from the rounds before.
class CheckpointPlanner final : public OutputPlanner {
 public:
  /// Borrows all. `common_group`: the largest group size of weights whose format has one for all; 0: not known to be
  /// smaller than what the config says.
  CheckpointPlanner(const ModelIndex& model, const families::ModelFamily& family, const ExpertPlan& experts,
                    const Config& config, const CheckpointFormat& format, const PlanOptions& options,
                    const FusedLayerSchemes& joined, int64_t common_group, List<Diagnostic>& diagnostics)
      : OutputPlanner(format.name(), model, config, options, diagnostics),
        family_(family),
        experts_(experts),
        conversions_(family),
        format_(format),
        joined_(joined),
        common_group_(common_group),
        exclusions_(family, {!options.include_towers, !format.traits().holds_input_major,
                             !format.traits().holds_split_layers, experts.left}),
        resolver_(config, &exclusions_),
        cache_(model, config, format, options) {}

  const List<LayerPlan>& outcomes() const noexcept { return outcomes_; }
  /// Whether rows need smaller groups than `common_group` in a format with one group size: plan again with this one.
  int64_t smaller_group() const noexcept { return smaller_group_; }

 private:
  Status prepare() override { return cache_.check(); }
  bool plans_cache() const override { return format_.traits().needs_config_block; }

  void add_tensors() override;
  void add_tensor(uint32_t index, const ModelTensor& tensor, const std::string& own_name = {});
  Status choose(PlannedTensor& planned, const ModelTensor& tensor);
  Status describe_groups(PlannedTensor& planned, const Stages& stages);
  // The spec of a bias is that of its layer's config.
  void resolve_bias(const ModelTensor& tensor, Resolved& resolved);
  // Quark quantizes modules of linear classes, which routers are not in transformers, and its loader expects their values.
  void leave_router(PlannedTensor& planned, Stages& stages);
  bool routes_experts(std::string_view layer) const;
  static bool is_expert(const ModelTensor& tensor);
  // vLLM computes with quantized inputs from bytes; some classes of transformers read a tensor called weight, or split it.
  bool needs_bytes(const WeightDescription& weight, const Stages& stages) const;
  // Describes a weight whose stored layout the output format keeps.
  Status describe_storage(const ModelTensor& tensor, PlannedTensor& planned, Stages& stages);
  // Leaves the layout empty if the format does not support this layer and only a preset's global spec covers it.
  Status lay_out(const ModelTensor& tensor, PlannedTensor& planned, const Stages& stages);
  QuantizationSpec with_fitting_group(const QuantizationSpec& spec, uint64_t axis, PlannedTensor& planned);
  // Where the format does not hold channels: one group a row has their scales, and the codes are stored another way.
  Result<WeightLayout> lay_out_fitting(const QuantizationSpec& spec, uint64_t axis, PlannedTensor& planned);
  QuantizationSpec with_common_group(QuantizationSpec spec, PlannedTensor& planned);
  // Source: vLLM's quantization/utils/fp8_utils.py, validate_fp8_block_shape.
  bool has_short_joined_block(const WeightDescription& weight, const WeightLayout& layout) const;
  const runtimes::Loader& loader() const { return runtimes::loader_of(format_); }
  // The length that groups have to divide.
  uint64_t group_axis(const WeightDescription& weight, const QuantizationSpec& spec) const;
  // A layer that fits is left if one that vLLM joins with it does not.
  void leave_with_others(PlannedTensor& planned);
  // transformers casts tensors next to bfloat16 weights to bfloat16, except those it converts.
  bool needs_bfloat16(const ModelTensor& tensor) const;
  // Whether a preset casts the whole model, and nothing decides otherwise for this tensor.
  bool is_cast_along(const ModelTensor& tensor, const Reason& reason) const;
  // Decodes values whose bytes cannot be copied: codes of another format, parts of transposed tensors.
  Status keep_values(const ModelTensor& tensor, PlannedTensor& planned);
  // Small floats rounded to another grid no longer fit their dtype, so they are written as BF16; doubles are computed in
  // float32.
  void widen_output(TensorTask& task);
  void add_outcome(PlannedTensor& planned);
  // Warns only for configs that ask for it explicitly; presets must load.
  void check_loader(const PlannedTensor& planned, const LayerPlan& layer);
  void add_activations(PlannedTensor& planned, LayerPlan& outcome);
  void report() override;
  // Algorithms may change weights that stay floats; a quantized source may be decoded.
  std::string_view coverage_hint() const override { return experts_.hint; }
  bool does_nothing() const override;
  void share_tensor_scales();
  // The runtime must apply the other half of R4.
  void report_online_rotation();
  Status place_files() override;

  const families::ModelFamily& family_;
  const ExpertPlan& experts_;
  const transformers::Conversions conversions_;
  const CheckpointFormat& format_;
  const FusedLayerSchemes& joined_;
  const int64_t common_group_;
  const transformers::DefaultExclusions exclusions_;
  Resolver resolver_;
  CachePlan cache_;
  List<LayerPlan> outcomes_;
  bool unloadable_ = false, is_reordered_ = false, has_warned_of_blocks_ = false;
  int64_t smaller_group_ = 0;
  CheckpointRemarks remarks_;
  CountWithExample undecoded_;  // codes that stay as they are
  std::string undecoded_text_;  // of the first
};

}  // namespace wasmquant
