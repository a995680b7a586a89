#include "checkpoint/layout/biased_codes.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/layout/tile_scales.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

size_t run_of(size_t elements, std::span<const QParams> q) noexcept { return elements / std::max<size_t>(q.size(), 1); }

}  // namespace

bool has_biases(const WeightLayout& layout) noexcept {
  for (const Component& component : layout.components)
    if (component.role == Role::bias) return true;
  return false;
}

void biases_of_zero_points(const QuantizationSpec& spec, std::span<const float> x, bool are_ends,
                           std::span<QParams> q) noexcept {
  const size_t run = run_of(x.size(), q);
  const bool is_end = are_ends && spec.scale_sign != ScaleSign::positive && needs_only_range(spec);
  for (size_t i = 0; i < q.size(); ++i) {
    if (is_end && q[i].zero_point != 0) {
      const kernels::Extent extent = kernels::reduce_extent(x.subspan(i * run, run));
      q[i].zero_point = q[i].scale > 0 ? extent.min : extent.max;
    } else {
      q[i].zero_point = 0.0f - q[i].zero_point * q[i].scale;
    }
  }
}

kernels::ErrorSums quantize_biased(const WeightLayout& layout, std::span<const QParams> q, std::span<const float> x,
                                   std::vector<float>& scratch, uint8_t* codes) {
  const size_t run = run_of(x.size(), q);
  scratch.resize(x.size());
  std::vector<QParams> scales(q.begin(), q.end());
  for (size_t i = 0; i < q.size(); ++i) {
    scales[i].zero_point = 0;
    for (size_t k = i * run; k < (i + 1) * run; ++k) scratch[k] = x[k] - q[i].zero_point;
  }
  QuantizationSpec spec = layout.spec;
  spec.grid.divides = true;
  quantize(one_scale_per_run(q.size(), run), spec, scales, kernels::Path::real, scratch, 0, codes);
  read_back_biased(layout, q, codes, scratch);
  return kernels::error_between(x, scratch.data());
}

void values_of_biased(std::span<const QParams> q, const uint8_t* codes, std::span<float> values) noexcept {
  const size_t run = run_of(values.size(), q);
  float* value = values.data();
  for (const QParams& one : q)
    for (size_t i = 0; i < run; ++i) *value++ = static_cast<float>(*codes++) * one.scale + one.zero_point;
}

void read_back_biased(const WeightLayout& layout, std::span<const QParams> q, const uint8_t* codes,
                      std::span<float> values) noexcept {
  const size_t run = run_of(values.size(), q);
  for (size_t i = 0; i < q.size(); ++i) {
    const QParams stored = as_stored(layout, q[i]);
    values_of_biased({&stored, 1}, codes + i * run, values.subspan(i * run, run));
  }
}

}  // namespace wasmquant
