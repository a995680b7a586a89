// Fake-quantized checkpoints: the weights in their own dtype after quantize and dequantize, under their own names. Any
// runtime that loads the original loads these; nothing gets smaller. Holds every spec.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

class FakeQuantized final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "fake-quantized"; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool holds_inputs(const Stages&) const override { return false; }
  json::Value quantization_config(const Config& config, const List<LayerOutcome>& layers) const override;
};

}  // namespace wasmquant
