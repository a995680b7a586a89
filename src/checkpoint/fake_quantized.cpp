// Fake-quantized checkpoints: the weights in their own dtype after quantize and dequantize, under their own names. Any
// runtime that loads the original loads these; nothing gets smaller. Holds every spec.
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

Result<WeightLayout> FakeQuantized::layout(const WeightDescription& weight, const Stages& stages) const {
  TRY(layout, begin_layout(weight, stages));
  if (info_of(layout.spec.dtype).is_plain_cast()) return cast_layout(std::move(layout), weight);
  if (info_of(layout.spec.dtype).is_block() && layout.granularity.inner != 1)
    return error_at(ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
                    "blocks of {} run along the last axis in model files; set ch_axis to -1 or exclude the layer",
                    info_of(layout.spec.dtype).name);
  layout.codes = CodeStorage::source_values;
  add_component(layout, weight, Role::codes, "weight", weight.source, weight.shape);
  return std::move(layout);
}

json::Value FakeQuantized::quantization_config(const Config&, const List<LayerOutcome>&) const { return nullptr; }

const CheckpointFormat& fake_quantized_format() noexcept {
  static constexpr FakeQuantized format;
  return format;
}

}  // namespace wasmquant
