#include "pipeline/stored/scale_scheme.h"

namespace wasmquant {
namespace {

// Of LAYER.PART.
bool is_part_of_scaled_weight(std::string_view part) noexcept {
  for (const std::string_view name : {"weight_shape", "weight_g_idx", "weight_global_scale", "input_global_scale"})
    if (part == name) return true;
  for (const std::string_view what : {"weight", "bias", "input", "output", "q", "k", "v", "kv", "prob"}) {
    if (!part.starts_with(what)) continue;
    const std::string_view rest = part.substr(what.size());
    for (const std::string_view kind : {"_scale", "_zero_point", "_scale_2", "_zero_point_2"})
      if (rest == kind) return true;
  }
  return false;
}

}  // namespace

void set_scheme(QuantizationSpec& spec, const std::vector<uint64_t>& scale_shape, const WeightDescription& weight,
                ScaleAxes axes) {
  const uint64_t columns = weight.shape.size() == 2 ? weight.shape[1] : 0;
  const uint64_t groups = scale_shape.size() == 2 ? scale_shape[axes.group_axis] : 0;
  if ((groups > 1 || (groups == 1 && axes.channel_axes == 1)) && columns % groups == 0) {
    spec.qscheme = QScheme::per_group;
    spec.observer = ObserverId::PerGroupMinMaxObserver;
    spec.ch_axis = -1;
    spec.group_size = static_cast<int64_t>(columns / groups);
  } else if (scale_shape.size() == 2 ||
             (scale_shape.size() == 1 && !weight.shape.empty() && scale_shape[0] == weight.shape[0] &&
              (scale_shape[0] != 1 || axes.channel_axes == 1))) {
    spec.qscheme = QScheme::per_channel;
    spec.observer = ObserverId::PerChannelMinMaxObserver;
    spec.ch_axis = 0;
  } else {
    spec.qscheme = QScheme::per_tensor;
    spec.observer = ObserverId::PerTensorMinMaxObserver;
  }
}

StoredRole use_in_scaled_weight(const ModelIndex& model, const ModelTensor& tensor) noexcept {
  const auto [layer, part] = split_name(tensor.stored.name);
  if (is_part_of_scaled_weight(part)) {
    const bool has_weight =
        tensor_of(model, layer, "weight") != nullptr || tensor_of(model, layer, "weight_packed") != nullptr;
    return has_weight || !part.starts_with("weight") ? StoredRole::part : StoredRole::plain;
  }
  const bool has_codes =
      part == "weight" && (tensor_of(model, layer, "weight_scale") != nullptr || !is_quantizable(tensor.stored.dtype));
  return has_codes ? StoredRole::codes : StoredRole::plain;
}

}  // namespace wasmquant
