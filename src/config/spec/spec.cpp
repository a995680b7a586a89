#include "config/spec/spec.h"

namespace wasmquant {

const char* unfit_stages(const QuantizationSpec& first, const QuantizationSpec& second) noexcept {
  for (const QuantizationSpec* stage : {&first, &second}) {
    const DtypeInfo& dtype = info_of(stage->dtype);
    if (dtype.is_plain_cast() || dtype.is_block() || stage->scale_format != ScaleFormat::float32)
      return "every stage has float32 scales; plain casts, mx and block dtypes stand alone";
    if (stage->zero_point_type == ZeroPointType::float32) return "zero points of stages are whole numbers";
    if (stage->scale_sign != ScaleSign::positive) return "scales of stages are positive";
    if (refits_calibrated(*stage)) return "scales of stages are not refit";
  }
  if (first.is_scale_quant) return "only the second of two stages quantizes scales";
  if (second.is_scale_quant) {
    if (first.qscheme != QScheme::per_group) return "is_scale_quant needs a first stage that is per_group";
    return second.qscheme != QScheme::per_tensor ? "scales are quantized per_tensor" : nullptr;
  }
  // Ranges of the second stage's input follow from those of the weight if the first stage is one monotonic cast.
  if (first.qscheme != QScheme::per_tensor || info_of(first.dtype).is_integer)
    return "the first of two stages has a floating dtype and is per_tensor";
  return nullptr;
}

LayerConfig::LayerConfig() noexcept = default;
LayerConfig::LayerConfig(const LayerConfig& other) = default;
LayerConfig::LayerConfig(LayerConfig&& other) noexcept = default;
LayerConfig& LayerConfig::operator=(const LayerConfig& other) = default;
LayerConfig& LayerConfig::operator=(LayerConfig&& other) noexcept = default;
LayerConfig::~LayerConfig() = default;

bool operator==(const LayerConfig& a, const LayerConfig& b) {
  return a.weight == b.weight && a.bias == b.bias && a.input_tensors == b.input_tensors &&
         a.output_tensors == b.output_tensors;
}

Config::Config() = default;
Config::Config(const Config& other) = default;
Config::Config(Config&& other) noexcept = default;
Config& Config::operator=(const Config& other) = default;
Config& Config::operator=(Config&& other) noexcept = default;
Config::~Config() = default;

namespace {

bool have_same_groups(const Config& a, const Config& b) {
  const auto &x = a.shared_scale_groups, &y = b.shared_scale_groups;
  return x.has_value() == y.has_value() && (!x || *x == *y);
}

}  // namespace

bool operator==(const Config& a, const Config& b) {
  return a.global == b.global && a.layer_type == b.layer_type && a.layer == b.layer && a.exclude == b.exclude &&
         a.kv_cache == b.kv_cache && a.cache == b.cache && a.kv_cache_group == b.kv_cache_group &&
         a.layer_types == b.layer_types && a.exact_names == b.exact_names && a.input_quantizers == b.input_quantizers &&
         a.resolution == b.resolution && a.indivisible_groups == b.indivisible_groups && a.non_finite == b.non_finite &&
         have_same_groups(a, b) && a.default_exclusions == b.default_exclusions &&
         a.shares_expert_inputs == b.shares_expert_inputs && a.export_info == b.export_info;
}

}  // namespace wasmquant
