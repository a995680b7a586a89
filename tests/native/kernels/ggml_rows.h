// Rows that are hard on block quantizers, made without libm so that they are the same everywhere.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/ggml_type.h"

namespace wasmquant::kernels {

/// Bell-shaped numbers from a fixed generator.
class BellShaped {
 public:
  explicit BellShaped(uint32_t seed) : state_(seed) {}
  uint32_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  float operator()() {
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>(next()) * 0x1p-24f - 0.5f;
    return sum;
  }

 private:
  uint32_t state_;
};

enum class Rows {
  bell,
  heavy,
  one_outlier,
  negative,
  zeros,
  constant,
  ties,
  mixed_zeros,
  tiny,
  subnormal,
  huge,
  wide,
  non_finite,
};
inline constexpr Rows kAllRows[] = {Rows::bell,     Rows::heavy, Rows::one_outlier, Rows::negative, Rows::zeros,
                                    Rows::constant, Rows::ties,  Rows::mixed_zeros, Rows::tiny,     Rows::subnormal,
                                    Rows::huge,     Rows::wide,  Rows::non_finite};

inline std::vector<float> rows_of(Rows kind, size_t count, uint32_t seed = 1) {
  BellShaped bell(seed);
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) {
    const float v = bell();
    const uint32_t dice = bell.next();
    switch (kind) {
      case Rows::bell:
        x[i] = v * 0.04f;
        break;
      case Rows::heavy:
        x[i] = v * v * v;
        break;
      case Rows::one_outlier:
        x[i] = i % 640 == 77 ? 40.0f : v * 0.04f;
        break;
      case Rows::negative:
        x[i] = -std::fabs(v) - 0.5f;
        break;
      case Rows::zeros:
        x[i] = i / 256 % 2 == 0 || i % 256 < 32 ? 0.0f : v;
        break;
      case Rows::constant:
        x[i] = static_cast<float>(i / 16 % 5) - 2.0f;
        break;
      case Rows::ties:
        x[i] = (static_cast<float>(dice % 33) - 16.0f) * 0.5f;
        break;
      case Rows::mixed_zeros:
        x[i] = dice % 4 != 0 ? std::copysign(0.0f, v) : v;
        break;
      case Rows::tiny:
        x[i] = v * (i / 256 % 2 == 0 ? 1e-7f : 1e-14f);
        break;
      case Rows::subnormal:
        x[i] = v * 1e-39f;
        break;
      case Rows::huge:
        x[i] = v * (i / 256 % 2 == 0 ? 1e12f : 1e37f);
        break;
      case Rows::wide:
        x[i] = std::ldexp(v, static_cast<int>(dice % 60) - 30);
        break;
      case Rows::non_finite:
        x[i] = dice % 9 == 0   ? std::numeric_limits<float>::infinity() * (v < 0 ? -1.0f : 1.0f)
               : dice % 9 == 1 ? std::numeric_limits<float>::quiet_NaN()
                               : v;
        break;
    }
  }
  return x;
}

/// Importance of columns, some of it zero.
inline std::vector<float> importance_of(size_t columns, uint32_t seed = 99) {
  BellShaped bell(seed);
  std::vector<float> importance(columns);
  for (float& v : importance) {
    v = bell();
    v = bell.next() % 8 == 0 ? 0.0f : v * v;
  }
  return importance;
}

/// The types of blocks, without f32, f16 and bf16.
inline std::vector<GgmlType> block_types() {
  std::vector<GgmlType> all;
  for (const GgmlTypeInfo& info : kGgmlTypes)
    if (info.can_quantize() && info.block > 1) all.push_back(info.type);
  return all;
}

}  // namespace wasmquant::kernels
