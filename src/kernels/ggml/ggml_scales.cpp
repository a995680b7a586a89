#include "kernels/ggml/ggml_scales.h"

#include <cmath>
#include <cstring>

namespace wasmquant::kernels {

float divide_scales(const float* x, size_t count, int32_t levels, uint8_t* codes) noexcept {
  float max = 0;
  for (size_t i = 0; i < count; ++i) max = x[i] > max ? x[i] : max;
  const float inverse = max > 0 ? static_cast<float>(levels) / max : 0;
  for (size_t i = 0; i < count; ++i) codes[i] = byte_of(nearest_int(inverse * x[i]));
  return max / static_cast<float>(levels);
}

float fit_scales(const float* x, const float* weight, size_t count, int32_t levels, uint8_t* codes) noexcept {
  float max = 0;
  for (size_t i = 0; i < count; ++i) max = max > x[i] ? max : x[i];
  std::memset(codes, 0, count);
  if (max < 1e-15f) return 0;
  const auto top = static_cast<float>(levels);
  float best_factor = 0, least = 0;
  for (int32_t k = -5; k <= 4; ++k) {  // -5: the plain factor, tried first
    if (k == 0) continue;
    const bool is_plain = k == -5;
    const float factor = is_plain ? top / max : (0.1f * static_cast<float>(k) + top) / max, scale = 1 / factor;
    float error = 0;
    for (size_t i = 0; i < count; ++i) {
      const int32_t nearest = nearest_int(factor * x[i]);
      const int32_t code = is_plain ? byte_of(nearest) : nearest < levels ? nearest : levels;
      const float diff = x[i] - scale * static_cast<float>(code);
      error += weight[i] * diff * diff;
    }
    if (!is_plain && !(error < least)) continue;
    least = error;
    best_factor = factor;
  }
  float sum_xl = 0, sum_l2 = 0;
  const auto bounded = [levels](float v) {
    const int32_t nearest = nearest_int(v);
    return nearest < levels ? nearest : levels;
  };
  for (size_t i = 0; i < count; ++i) {
    const int32_t code = bounded(best_factor * x[i]);
    codes[i] = byte_of(code);
    sum_xl += weight[i] * x[i] * static_cast<float>(code);
    sum_l2 += weight[i] * static_cast<float>(code) * static_cast<float>(code);
  }
  bool has_changed = true;
  for (int round = 0; round < 5 && has_changed; ++round) {
    has_changed = false;
    for (size_t i = 0; i < count; ++i) {
      const float w = weight[i], code = codes[i];
      float xl = sum_xl - w * x[i] * code, l2 = sum_l2 - w * code * code;
      if (!(xl > 0 && l2 > 0)) continue;
      const int32_t other = bounded(x[i] * l2 / xl);
      if (other == codes[i]) continue;
      const auto l = static_cast<float>(other);
      xl += w * x[i] * l;
      l2 += w * l * l;
      if (!(xl * xl * sum_l2 > sum_xl * sum_xl * l2)) continue;
      codes[i] = byte_of(other);
      sum_xl = xl;
      sum_l2 = l2;
      has_changed = true;
    }
  }
  return sum_l2 > 0 ? sum_xl / sum_l2 : 0;
}

float largest_of(const float* scale, size_t count) noexcept {
  float largest = 0, magnitude = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(std::fabs(scale[i]) > magnitude)) continue;
    magnitude = std::fabs(scale[i]);
    largest = scale[i];
  }
  return largest;
}

}  // namespace wasmquant::kernels
