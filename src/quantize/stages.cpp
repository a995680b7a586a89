// Scales, codes and values of both stages; block scales of the progressive ones.
#include "quantize/stages.h"

#include <algorithm>
#include <cstring>

#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr size_t kChunk = 512;

// One tensor, one scale: lets quantize() treat a span independently.
Granularity whole(size_t count) {
  Granularity g;
  g.inner = count;
  return g;
}

}  // namespace

Result<TwoStages> TwoStages::create(const QuantizationSpec& first, const QuantizationSpec& second,
                                    const std::vector<uint64_t>& shape) {
  if (const char* problem = unfit_stages(first, second)) return Error{ErrorCode::spec_invalid, "", problem};
  TRY(granularity, granularity_of(shape, second.is_scale_quant ? first : second));
  return TwoStages(first, second, std::move(granularity));
}

bool TwoStages::can_join() const noexcept {
  if (!is_scale_quant()) return first_.qscheme == QScheme::per_tensor;
  const bool is_largest = !info_of(second_.dtype).is_integer || second_.symmetric;
  return second_.qscheme == QScheme::per_tensor && is_largest && ScaleRule(first_).needs_only_magnitude();
}

// Quark divides once where both stages are floats: the tensor's magnitude by the product of both largest values, a
// block's by the product of that scale and the largest element. A block whose code would be 0 gets 1.
bool TwoStages::divides_once() const noexcept {
  return !info_of(first_.dtype).is_integer && !info_of(second_.dtype).is_integer &&
         first_.scale_format == ScaleFormat::float32;
}

TwoStages::Scales TwoStages::block_scales_of(std::span<const float> min, std::span<const float> max,
                                             const ValueRange& joined) const {
  const FloatFormat format = float_format_of(second_);
  Scales scales;
  ValueRange all = range_of(min, max);
  all.add(joined);
  scales.other = {second_scale_of(all, first_, static_cast<float>(format.max_finite())), 0};
  const float divisor = scales.other.scale * static_cast<float>(float_format_of(first_).max_finite());
  for (size_t i = 0; i < min.size(); ++i) {
    const float magnitude = min[i] > max[i] ? 0.0f : std::max({-min[i], max[i], 0.0f});
    uint32_t code = encode(format, magnitude / divisor, Overflow::saturate);
    if (decode(format, code) == 0) code = encode(format, 1.0f, Overflow::saturate);
    scales.scale_codes.push_back(code);
    scales.of_codes.push_back({decode(format, code) * scales.other.scale, 0});
  }
  return scales;
}

TwoStages::Scales TwoStages::scales_of(std::span<const float> min, std::span<const float> max,
                                       const ValueRange& joined) const {
  Scales scales;
  scales.of_codes.resize(min.size());
  if (is_scale_quant()) {
    if (divides_once()) return block_scales_of(min, max, joined);
    qparams_of_ranges(min, max, first_, scales.of_codes);
    std::vector<float> scale;
    for (const QParams& q : scales.of_codes) scale.push_back(q.scale);
    const kernels::Extent extent = kernels::reduce_extent(scale);
    const float of_others = joined.empty() ? extent.max : qparams_of(joined.min, joined.max, first_).scale;
    scales.other = qparams_of(extent.min, std::max(extent.max, of_others), second_);
    const uint32_t bytes = code_bytes_of(second_);
    const Granularity g = whole(scale.size());
    std::vector<uint8_t> codes(scale.size() * bytes);
    wasmquant::quantize(g, second_, {&scales.other, 1}, kernels::Path::real, scale, 0, codes.data());
    wasmquant::dequantize(g, second_, {&scales.other, 1}, codes.data(), scale.size(), 0, scale.data());
    scales.scale_codes.resize(scale.size());
    for (size_t i = 0; i < scale.size(); ++i) {
      std::memcpy(&scales.scale_codes[i], &codes[i * bytes], bytes);
      // A scale of zero would be a divisor; any other value works, since everything reads back as zero.
      scales.of_codes[i].scale = scale[i] != 0 ? scale[i] : kScaleEpsilon;
    }
    return scales;
  }
  ValueRange all = range_of(min, max);
  all.add(joined);
  all.add({0, 0});
  scales.other = qparams_of(all.min, all.max, first_);
  // The cast is monotonic: the ends of a range of codes are the codes of its ends.
  const auto number = [&](float v) {
    numbers_of(scales.other, {&v, 1}, &v);
    return v;
  };
  std::vector<float> code_min(min.begin(), min.end()), code_max(max.begin(), max.end());
  for (size_t i = 0; i < min.size(); ++i) {
    if (min[i] > max[i]) continue;
    code_min[i] = number(min[i]);
    code_max[i] = number(max[i]);
  }
  qparams_of_ranges(code_min, code_max, second_, scales.of_codes);
  return scales;
}

void TwoStages::numbers_of(const QParams& other, std::span<const float> x, float* y) const noexcept {
  const FloatFormat format = float_format_of(first_);
  const Arithmetic arithmetic = quotient_arithmetic(first_);
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = decode(format, encode(format, rounded_to(arithmetic, x[i] / other.scale), Overflow::saturate));
}

void TwoStages::values_of(const QParams& other, std::span<float> y) const noexcept {
  for (float& v : y) v *= other.scale;
}

void TwoStages::quantize(const Scales& scales, std::span<const float> x, uint64_t begin, uint8_t* codes) const {
  if (is_scale_quant())
    return wasmquant::quantize(granularity_, first_, scales.of_codes, kernels::Path::real, x, begin, codes);
  float number[kChunk];
  for (size_t at = 0; at < x.size(); at += kChunk) {
    const size_t count = std::min(kChunk, x.size() - at);
    numbers_of(scales.other, x.subspan(at, count), number);
    wasmquant::quantize(granularity_, second_, scales.of_codes, kernels::Path::real, {number, count}, begin + at,
                        codes + at * code_bytes_of(second_));
  }
}

void TwoStages::dequantize(const Scales& scales, const uint8_t* codes, uint64_t count, uint64_t begin, float* y) const {
  wasmquant::dequantize(granularity_, code_spec(), scales.of_codes, codes, count, begin, y);
  if (!is_scale_quant()) values_of(scales.other, {y, static_cast<size_t>(count)});
}

}  // namespace wasmquant
