#include "config/spec.h"

namespace wasmquant {

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

bool operator==(const Config& a, const Config& b) {
  return a.global == b.global && a.layer_type == b.layer_type && a.layer == b.layer && a.exclude == b.exclude &&
         a.exact_names == b.exact_names && a.input_quantizers == b.input_quantizers && a.resolution == b.resolution &&
         a.indivisible_groups == b.indivisible_groups && a.non_finite == b.non_finite && a.export_info == b.export_info;
}

}  // namespace wasmquant
