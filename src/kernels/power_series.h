// a^p in float32 for a in [2^-100, 2^11] and p in [-1, 0), computed as 2^(p log2 a) by kernel and oracle alike.
//   a = m 2^e, m in [sqrt(1/2), sqrt(2));  log2 m = 2 / ln 2 (t + t^3/3 + t^5/5 + t^7/7),  t = (m - 1) / (m + 1)
//   2^y = 2^n exp(ln 2 (y - n)), n = y rounded to a whole number by adding kShifter; six terms
// |t| <= 0.172 and |y - n| <= 1/2: the truncation error is below 1e-7 of the result. Coefficients: last term first.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/exponential_terms.h"

namespace wasmquant::kernels::power_series {

inline constexpr float kSmallest = 0x1p-100f;         // replaces everything below, including 0
inline constexpr int32_t kSqrtHalfBits = 0x3F3504F3;  // of sqrt(1/2)
inline constexpr std::array<float, 4> kLog2 = {0.41219858f, 0.57707802f, 0.96179669f, 2.8853901f};
inline constexpr std::array<float, 7> kExp2 = {1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f, 0.055504109f,
                                               0.24022651f,   0.69314718f,   1.0f};

}  // namespace wasmquant::kernels::power_series
