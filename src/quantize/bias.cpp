#include "quantize/bias.h"

#include <algorithm>
#include <cmath>

#include "core/message.h"

namespace wasmquant {

Status quantize_bias(std::span<const float> bias, float input_scale, std::span<const QParams> weight, uint32_t bits,
                     std::span<int32_t> codes, std::span<float> scales) {
  if (codes.size() != bias.size() || scales.size() != bias.size() ||
      (weight.size() != 1 && weight.size() != bias.size()))
    return error_at(ErrorCode::shape_mismatch, "", "a bias of {} elements does not go with {} scales of weights",
                    bias.size(), weight.size());
  if (bits != 8 && bits != 16 && bits != 24 && bits != 32)
    return error_at(ErrorCode::argument_invalid, "", "a bias has 8, 16, 24 or 32 bits, not {}", bits);
  if (const int64_t at = kernels::find_non_finite(bias); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "bias element {} is NaN or infinite", at);
  const double half = static_cast<double>(uint64_t{1} << (bits - 1));
  for (size_t i = 0; i < bias.size(); ++i) {
    scales[i] = input_scale * weight[weight.size() == 1 ? 0 : i].scale;
    const double code = std::nearbyint(bias[i] / scales[i]);
    codes[i] = static_cast<int32_t>(std::clamp(code, -half, half - 1));
  }
  return {};
}

}  // namespace wasmquant
