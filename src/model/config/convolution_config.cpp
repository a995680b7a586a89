#include "model/config/convolution_config.h"

#include <cmath>

#include "core/message.h"

namespace wasmquant::model {
namespace {

// Source: transformers, models/lfm2/modeling_lfm2.py, Lfm2MLP.
Status adjust_width(const json::Value& config, Architecture& out) {
  const json::Value &multiplier = config["block_ffn_dim_multiplier"], &step = config["block_multiple_of"];
  double width = std::floor(2.0 * out.intermediate / 3);
  if (!multiplier.is_null() || config.find("block_ffn_dim_multiplier") == nullptr) {
    const double multiple = step.is_integer() ? static_cast<double>(step.as_integer()) : 256;
    width = std::floor(width * (multiplier.is_finite() ? multiplier.as_number() : 1));
    if (multiple >= 1) width = multiple * std::ceil(width / multiple);
  }
  if (!(width >= 1 && width <= 1 << 24))
    return error_at(ErrorCode::config_invalid, "/block_ffn_dim_multiplier",
                    "makes the {} of block_ff_dim an impossible width", out.intermediate);
  out.intermediate = static_cast<uint32_t>(width);
  return {};
}

}  // namespace

Status read_convolutions(const json::Value& config, Architecture& out) {
  if (!out.names.has(ModelPart::conv)) return {};
  constexpr int64_t kUsual = 3;
  const json::Value& width = config["conv_L_cache"];
  const int64_t found = width.is_null() ? kUsual : width.is_integer() ? width.as_integer() : 0;
  if (found < 1 || found > kMaxConvolution)
    return error_at(ErrorCode::config_invalid, "/conv_L_cache", "must be a whole number from 1 to {}", kMaxConvolution);
  out.convolution_width = static_cast<uint32_t>(found);
  out.is_convolution = List<bool>(out.layers);
  const json::Array& types = config["layer_types"].items();
  if (!types.empty() && types.size() != out.layers)
    return error_at(ErrorCode::config_invalid, "/layer_types", "has {} items, num_hidden_layers is {}", types.size(),
                    out.layers);
  const json::Value& attending = config["full_attn_idxs"];
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    bool& is_one = out.is_convolution[layer];
    is_one = types.empty() ? !attending.is_null() : types[layer].as_string() == "conv";
    if (types.empty())
      for (const json::Value& index : attending.items())
        if (index.as_integer() == layer) is_one = false;
  }
  const json::Value& adjusts = config["block_auto_adjust_ff_dim"];
  if (out.names.has(ModelPart::router) || (adjusts.is_bool() && !adjusts.as_bool())) return {};
  return adjust_width(config, out);
}

}  // namespace wasmquant::model
