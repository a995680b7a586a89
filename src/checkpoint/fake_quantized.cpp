#include "checkpoint/fake_quantized.h"

#include "core/list.h"

namespace wasmquant {

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

}  // namespace wasmquant
