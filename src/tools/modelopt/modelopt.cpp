// NVIDIA ModelOpt's exports (quant_method "modelopt"), read only. Floats as in scaled_floats.h; also:
//   int4   P.weight U8 [out / 2, in], two rows in a byte, the first in the low nibble; P.weight_scale [out, in/group]
//   int8   P.weight I8 [out, in]; P.weight_scale [out]
//   any    P.pre_quant_scale [in], by which the layer multiplies its inputs: values are multiplied by it, too
// Source: Model-Optimizer, torch/export/quant_utils.py, pack_int4_in_uint8, to_quantized_weight and
// get_prequant_scaling_factor.
#include "checkpoint/read_only_format.h"

namespace wasmquant {

const CheckpointFormat& scaled_floats_format() noexcept;

class ModelOpt final : public ReadOnlyFormat {
 public:
  std::string_view name() const noexcept override { return "modelopt"; }
  /// `weight.stored`: {"pre_quant_scale": boolean}.
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override {
    TRY(layout, stages.front().dtype == Dtype::int4 ? row_pairs(weight, stages)
                                                    : scaled_floats_format().layout(weight, stages));
    if ((*weight.stored)["pre_quant_scale"].as_bool())
      add_component(layout, weight, Role::column_factor, "pre_quant_scale", StorageDtype::F32, {layout.columns});
    return std::move(layout);
  }

 private:
  static Result<WeightLayout> row_pairs(const WeightDescription& weight, const Stages& stages) {
    TRY(layout, begin_layout(weight, stages));
    if (weight.shape.size() != 2 || layout.rows % 2 != 0)
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight", weight.layer),
                      "has shape {}; ModelOpt stores int4 of matrices with an even number of rows",
                      describe(weight.source, weight.shape));
    layout.codes = CodeStorage::row_pair_nibbles;
    add_component(layout, weight, Role::codes, "weight", StorageDtype::U8, {layout.rows / 2, layout.columns});
    add_component(layout, weight, Role::scale, "weight_scale", StorageDtype::F32, layout.granularity.scale_shape);
    return std::move(layout);
  }
};

const CheckpointFormat& modelopt_format() noexcept {
  static constexpr ModelOpt format;
  return format;
}

}  // namespace wasmquant
