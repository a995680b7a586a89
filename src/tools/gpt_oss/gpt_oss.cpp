// gpt-oss: experts in MXFP4 (quant_method "mxfp4"), read only. P is the module path with the parameter, such as
// model.layers.0.mlp.experts.gate_up_proj.
//   P_blocks  U8 [experts, rows, columns/32, 16], two E2M1 codes in a byte, the first in the low nibble
//   P_scales  U8 [experts, rows, columns/32], 2^(s - 127)
// transformers' own parameter P is [experts, columns, rows]: each expert transposed. Source: transformers,
// integrations/mxfp4.py, convert_moe_packed_tensors.
#include <algorithm>

#include "checkpoint/read_only_format.h"

namespace wasmquant {

class GptOss final : public ReadOnlyFormat {
 public:
  std::string_view name() const noexcept override { return "gpt-oss-mxfp4"; }
  /// `weight.shape`: [experts, columns, rows].
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override {
    if (weight.shape.size() != 3 || weight.shape[1] % 32 != 0)
      return error_at(ErrorCode::shape_mismatch, weight.layer,
                      "has shape {}; gpt-oss stores [experts, columns, rows], columns being a multiple of 32",
                      describe(weight.source, weight.shape));
    const uint64_t experts = weight.shape[0], columns = weight.shape[1], rows = weight.shape[2];
    WeightDescription stored = weight;
    stored.shape = {experts, rows, columns};
    TRY(layout, begin_layout(stored, stages));
    layout.shape = weight.shape;
    layout.matrix_rows = rows;
    layout.codes = CodeStorage::rows_bit_stream;
    add_component(layout, weight, Role::codes, "blocks", StorageDtype::U8, {experts, rows, columns / 32, 16});
    add_component(layout, weight, Role::scale, "scales", StorageDtype::U8, {experts, rows, columns / 32});
    for (Component& component : layout.components) component.name_part.front() = '_';  // replaces a dot
    return std::move(layout);
  }
};

const CheckpointFormat& gpt_oss_format() noexcept {
  static constexpr GptOss format;
  return format;
}

}  // namespace wasmquant
