// The key-value cache in a plan: scales that a source stores are kept, and scales that a config asks for are calibrated.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"
#include "pipeline/model_index/source_cache.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// The cache of one model in one checkpoint format. The arguments must outlive it.
class CachePlan {
 public:
  CachePlan(const ModelIndex& model, const Config& config, const CheckpointFormat& format, const PlanOptions& options);

  /// Error: format-unsupported, if the config asks for a cache that the format or this library cannot give.
  Status check() const;

  /// Whether `<layer>.output_scale` of k_proj and v_proj are those of the cache, as in Quark's files.
  bool is_of_outputs() const noexcept;
  /// Whether scales are to be calibrated.
  bool is_requested() const noexcept { return !where_.empty(); }
  /// Whether layers of kv_cache_group share a scale: those of outputs, without zero points, one a tensor, as in Quark.
  bool shares_scales() const noexcept;
  /// Whether the outputs that an entry of the cache gives a layer are stored as keys or values of its attention.
  bool moves_outputs() const noexcept { return is_requested() && !is_of_outputs(); }
  /// Requests keys for the k_proj of an attention and values for its v_proj; adds the tensors found to the activations of
  /// `planned`. Others are passed over. `is_cached`: an entry of the cache gives the layer outputs. Where these are the cache,
  /// `outcome` learns it.
  void add(PlannedTensor& planned, LayerPlan& outcome, bool is_cached, List<ActivationRequest>& requests);
  /// Call after the last tensor. Error: format-unsupported, if a cache is to be calibrated, and no attention, or not each,
  /// gets scales.
  Status check_found() const;

  /// What becomes of the scales and the scheme of the source.
  std::optional<Diagnostic> remark() const;
  /// Adds the scheme of the cache to the config block.
  void describe(json::Value& block) const;

 private:
  bool keeps_scheme() const noexcept;

  const Config& config_;
  const CheckpointFormat& format_;
  const PlanOptions& options_;
  const SourceCache source_;
  const std::string where_;  // of the key that asks for a cache; empty: none does, or the source has the scales
  Stages requested_;         // of keys and values; empty: their layers have their own
  uint64_t found_ = 0;
  std::string left_;  // the first layer whose float weight leaves no place for the scale of its outputs
};

}  // namespace wasmquant
