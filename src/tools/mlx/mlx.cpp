// MLX: rows as bit streams in words, read only. P is a module; stacked experts have a leading third axis.
//            P.weight U32               P.scales                  P.biases
//   affine   [out, in * bits / 32]      floats [out, in/group]    likewise; 2, 3, 4, 5, 6 or 8 bits
//   mxfp4    [out, in / 8]              U8 [out, in/32], E8M0     none
//   nvfp4    [out, in / 8]              U8 [out, in/16], E4M3     none
//   mxfp8    [out, in / 4]              U8 [out, in/32], E8M0     none
// affine: value = scale * code + bias, each rounded to float32; codes are the least significant bits first, across
// words. Source: mlx, ops.cpp, affine_dequantize and fp_dequantize.
#include "checkpoint/read_only_format.h"

namespace wasmquant {

class Mlx final : public ReadOnlyFormat {
 public:
  std::string_view name() const noexcept override { return "mlx"; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override {
    TRY(layout, begin_layout(weight, stages));
    const uint64_t columns = weight.shape.empty() ? 0 : weight.shape.back(), group = layout.granularity.block;
    if (weight.shape.size() < 2 || layout.spec.qscheme != QScheme::per_group || columns % group != 0 ||
        columns * layout.bits % 32 != 0)
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight", weight.layer),
                      "has shape {}; MLX stores rows of whole groups and words", describe(weight.source, weight.shape));
    std::vector<uint64_t> words = weight.shape, groups = weight.shape;
    words.back() = columns * layout.bits / 32;
    groups.back() = columns / group;
    layout.codes = layout.bits == 8 ? CodeStorage::rows_bytes : CodeStorage::rows_bit_stream;
    add_component(layout, weight, Role::codes, "weight", StorageDtype::U32, std::move(words));
    if (info_of(layout.spec.dtype).is_integer) {
      add_component(layout, weight, Role::scale, "scales", StorageDtype::F32, groups);
      add_component(layout, weight, Role::bias, "biases", StorageDtype::F32, std::move(groups));
    } else {
      const bool is_e4m3 = layout.spec.scale_format == ScaleFormat::e4m3;
      add_component(layout, weight, Role::scale, "scales", is_e4m3 ? StorageDtype::F8_E4M3 : StorageDtype::U8,
                    std::move(groups));
    }
    return std::move(layout);
  }
};

const CheckpointFormat& mlx_format() noexcept {
  static constexpr Mlx format;
  return format;
}

}  // namespace wasmquant
