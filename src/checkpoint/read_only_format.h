// What read-only formats have in common.
#pragma once
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// Base of read-only formats: rejects everything that concerns writing.
class ReadOnlyFormat : public CheckpointFormat {
 public:
  FormatTraits traits() const noexcept final { return {.is_read_only = true}; }
  bool stores_input_scales(const Stages&) const final { return false; }
  json::Value quantization_config(const Config&, const List<LayerPlan>&, const families::ModelFamily&) const final {
    return nullptr;
  }

 protected:
  ~ReadOnlyFormat() = default;
};

/// Groups of `size` elements along the last axis.
QuantizationSpec groups_of(Dtype dtype, ScaleFormat scale_format, uint64_t size) noexcept;

}  // namespace wasmquant
