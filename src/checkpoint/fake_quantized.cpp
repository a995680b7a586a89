// Fake-quantized checkpoints: dequantized weights in their dtype and under their names. Any runtime that loads the
// original loads these. Supports every spec. Scales are rounded to the weight's dtype, as in compressed-tensors.
#include "checkpoint/checkpoint_format.h"
#include "checkpoint/stacked_weight.h"
#include "core/list.h"

namespace wasmquant {

class FakeQuantized final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "fake-quantized"; }
  FormatTraits traits() const noexcept override {
    return {.needs_config_block = false,
            .holds_group_index = true,
            .holds_input_major = true,
            .holds_biases = true,
            .holds_end_codes = true,
            .declares_rotation = true,
            .experts = ExpertStorage::as_stored};
  }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool stores_input_scales(const Stages&) const override { return false; }
  json::Value quantization_config(const Config&, const List<LayerPlan>&, const families::ModelFamily&) const override {
    return nullptr;
  }
};

Result<WeightLayout> FakeQuantized::layout(const WeightDescription& weight, const Stages& stages) const {
  TRY(seen, stacked_weight(weight, stages));
  if (seen.stages.size() == 1) seen.stages.front() = with_source_scales(seen.stages.front(), weight.source);
  TRY(layout, begin_layout(seen.weight, seen.stages));
  if (info_of(layout.spec.dtype).is_plain_cast()) return cast_layout(std::move(layout), weight);
  if (info_of(layout.spec.dtype).is_block() && layout.granularity.inner != 1)
    return error_at(ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
                    "blocks of {} run along the last axis in model files; set ch_axis to -1 or exclude the layer",
                    info_of(layout.spec.dtype).name);
  layout.codes = CodeStorage::source_values;
  add_component(layout, weight, Role::codes, "weight", weight.source, weight.shape);
  return std::move(layout);
}

const CheckpointFormat& fake_quantized_format() noexcept {
  static constexpr FakeQuantized format;
  return format;
}

}  // namespace wasmquant
