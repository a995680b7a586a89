// How a plan writes the experts of a mixture, or why it leaves them.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "pipeline/plan/output_format.h"

namespace wasmquant {

struct ExpertPlan {
  ExpertStorage storage = ExpertStorage::as_stored;
  std::string left;        // why they keep their dtype; empty: they are quantized
  std::string hint;        // what quantizes them all the same; empty: nothing is known
  bool are_split = false;  // the model stores all in one tensor, and the plan has one matrix each

  void leave(std::string reason, std::string what_to_do = {}) {
    storage = ExpertStorage::left;
    left = std::move(reason);
    hint = std::move(what_to_do);
  }
};

/// What the options, the format and the family say of experts before any layer is planned. format_unsupported: the
/// options include experts that no loader reads.
Result<ExpertPlan> choose_experts(const ModelIndex& model, const families::ModelFamily& family, const Config& config,
                                  const CheckpointFormat& format, const PlanOptions& options);

}  // namespace wasmquant
