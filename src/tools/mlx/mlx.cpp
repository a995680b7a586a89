// MLX: rows as bit streams in words. P is a module; stacked experts, which are read only, have a leading third axis.
//            P.weight U32               P.scales                  P.biases
//   affine   [out, in * bits / 32]      floats [out, in/group]    likewise; 2, 3, 4, 5, 6 or 8 bits
//   mxfp4    [out, in / 8]              U8 [out, in/32], E8M0     none
//   nvfp4    [out, in / 8]              U8 [out, in/16], E4M3     none
//   mxfp8    [out, in / 4]              U8 [out, in/32], E8M0     none
// affine: value = scale * code + bias, each rounded to float32, scales and biases in the weight's dtype; codes are the least
// significant bits first, across words. Source: mlx, ops.cpp, affine_dequantize and fp_dequantize.
#include <algorithm>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {
namespace {

constexpr const char* kModes =
    "mlx holds unsigned integers of 2, 3, 4, 5, 6 and 8 bits in groups of 32, 64 or 128 (affine), fp4 (mxfp4) and "
    "fp8_e4m3 (mxfp8) in groups of 32 with e8m0 scales, and fp4 in groups of 16 with e4m3 scales (nvfp4)";

// Empty: not one of MLX's.
std::string_view mode_of(const QuantizationSpec& spec) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const int64_t group = spec.group_size;
  if (spec.qscheme != QScheme::per_group) return {};
  if (dtype.is_integer) {
    const bool is_width = dtype.bits >= 2 && dtype.bits <= 8 && dtype.bits != 7;
    const bool is_group = group == 32 || group == 64 || group == 128;
    return is_width && is_group && !dtype.is_signed && spec.scale_format == ScaleFormat::float32 ? "affine" : "";
  }
  if (spec.dtype == Dtype::fp4 && spec.scale_format == ScaleFormat::e4m3 && group == 16) return "nvfp4";
  if (spec.scale_format != ScaleFormat::e8m0 || group != 32) return {};
  return spec.dtype == Dtype::fp4 ? "mxfp4" : spec.dtype == Dtype::fp8_e4m3 ? "mxfp8" : "";
}

json::Value parameters_of(const QuantizationSpec& spec) {
  json::Value out;
  out.set("group_size", spec.group_size);
  out.set("bits", int64_t{info_of(spec.dtype).bits});
  out.set("mode", mode_of(spec));
  return out;
}

}  // namespace

class Mlx final : public CheckpointFormat {
 public:
  std::string_view name() const noexcept override { return "mlx"; }
  FormatTraits traits() const noexcept override { return {.holds_end_codes = true}; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override;
  bool stores_input_scales(const Stages&) const override { return false; }
  json::Value quantization_config(const Config&, const List<LayerPlan>& layers,
                                  const families::ModelFamily&) const override;
};

Result<WeightLayout> Mlx::layout(const WeightDescription& weight, const Stages& stages) const {
  TRY(layout, begin_layout(weight, stages));
  if (info_of(layout.spec.dtype).is_plain_cast()) return cast_layout(std::move(layout), weight);
  const QuantizationSpec& spec = layout.spec;
  const uint64_t columns = weight.shape.empty() ? 0 : weight.shape.back(), group = layout.granularity.block;
  if (mode_of(spec).empty() || !layout.stages.empty())
    return error_at(ErrorCode::format_unsupported, text_of("{}.weight", weight.layer), "found {} in groups of {}; {}",
                    info_of(spec.dtype).name, spec.group_size, kModes);
  if (weight.shape.size() < 2 || columns % group != 0 || columns * layout.bits % 32 != 0)
    return error_at(ErrorCode::shape_mismatch, text_of("{}.weight", weight.layer),
                    "has shape {}; MLX stores rows of whole groups and words", describe(weight.source, weight.shape));
  std::vector<uint64_t> words = weight.shape, groups = weight.shape;
  words.back() = columns * layout.bits / 32;
  groups.back() = columns / group;
  layout.codes = layout.bits == 8 ? CodeStorage::rows_bytes : CodeStorage::rows_bit_stream;
  add_component(layout, weight, Role::codes, "weight", StorageDtype::U32, std::move(words));
  if (info_of(spec.dtype).is_integer) {
    const bool is_half = weight.source == StorageDtype::BF16 || weight.source == StorageDtype::F16;
    const StorageDtype floats = is_half ? weight.source : StorageDtype::F32;
    add_component(layout, weight, Role::scale, "scales", floats, groups);
    add_component(layout, weight, Role::bias, "biases", floats, std::move(groups));
  } else {
    layout.is_stored = spec.scale_format == ScaleFormat::e4m3;  // no scale of the whole tensor
    add_component(layout, weight, Role::scale, "scales", StorageDtype::U8, std::move(groups));
  }
  return std::move(layout);
}

json::Value Mlx::quantization_config(const Config&, const List<LayerPlan>& layers, const families::ModelFamily&) const {
  json::Value standard;
  for (const LayerPlan& layer : layers)
    if (!keeps_weight(layer) && (standard.is_null() || layer.layer_type == "Linear")) {
      standard = parameters_of(layer.weight->front());
      if (layer.layer_type == "Linear") break;
    }
  json::Value out = standard;
  for (const LayerPlan& layer : layers) {
    if (keeps_weight(layer)) continue;
    json::Value own = parameters_of(layer.weight->front());
    if (own != standard) out.set(layer.stored_layer.empty() ? layer.layer : layer.stored_layer, std::move(own));
  }
  return out;
}

const CheckpointFormat& mlx_format() noexcept {
  static constexpr Mlx format;
  return format;
}

}  // namespace wasmquant
