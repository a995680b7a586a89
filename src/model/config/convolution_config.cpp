#include "model/config/convolution_config.h"

#include <cmath>

#include "core/message.h"

namespace wasmquant::model {

// Source: transformers, models/lfm2/modeling_lfm2.py, Lfm2MLP.
Status adjust_width(const json::Value& config, Architecture& out) {
  const json::Value& adjusts = config["block_auto_adjust_ff_dim"];
  const bool has_mixtures = out.names.has(ModelPart::router), is_off = adjusts.is_bool() && !adjusts.as_bool();
  if (out.recurrence.heads > 0 || out.convolution_width == 0 || has_mixtures || is_off) return {};
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

}  // namespace wasmquant::model
