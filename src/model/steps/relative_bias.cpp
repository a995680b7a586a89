// Bucket of distance d, of n buckets for a side (half of all where both are seen) with e = n / 2 exact ones, up to distance m:
//   d < e: d;   else e + floor(log(d / e) / log(m / e) (n - e)), at most n - 1;   n more for keys behind the query
// Source: transformers, models/t5/modeling_t5.py.
#include "model/steps/relative_bias.h"

#include <algorithm>
#include <cstdlib>

#include "model/steps/attention.h"
#include "numeric/exponential.h"

namespace wasmquant::model {

size_t bucket_of(const Relative& relative, bool sees_both, ptrdiff_t distance) noexcept {
  const size_t of_side = relative.buckets / (sees_both ? 2 : 1), exact = of_side / 2;
  const size_t side = sees_both && distance > 0 ? of_side : 0;
  const auto far = static_cast<size_t>(std::abs(distance));
  if (far < exact) return side + far;
  const double share = log2_of(static_cast<double>(far) / static_cast<double>(exact)) /
                       log2_of(static_cast<double>(relative.farthest) / static_cast<double>(exact));
  const double wide = share * static_cast<double>(of_side - exact);
  return side + std::min(exact + static_cast<size_t>(wide), of_side - 1);
}

RelativeBias::RelativeBias(const Architecture& a, std::span<const float> table, size_t longest)
    : longest_(longest), values_(a.heads * (2 * longest - 1)) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const size_t head = i / (2 * longest - 1), at = i % (2 * longest - 1);
    const ptrdiff_t distance = static_cast<ptrdiff_t>(at) - static_cast<ptrdiff_t>(longest - 1);
    values_[i] = table[bucket_of(a.relative, a.is_encoder, distance) * a.heads + head];
  }
}

RelativeBias::RelativeBias(const Architecture& a, size_t longest)
    : longest_(longest), values_(a.heads * (2 * longest - 1)) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const size_t head = i / (2 * longest - 1), at = i % (2 * longest - 1);
    const size_t distance = at < longest ? longest - 1 - at : at - (longest - 1);
    values_[i] = -slope_of(a.heads, head) * static_cast<float>(distance);
  }
}

void RelativeBias::add(size_t head, size_t token, size_t first_key, std::span<float> scores) const noexcept {
  const float* value = values_.data() + head * (2 * longest_ - 1) + (longest_ - 1 + first_key - token);
  for (float& score : scores) score += *value++;
}

}  // namespace wasmquant::model
