#include "quantize/stages.h"

#include <algorithm>
#include <cstring>

#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr size_t kChunk = 512;

Error unfit(const char* message) { return Error{ErrorCode::spec_invalid, "", message}; }

bool has_scale(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return !dtype.is_plain_cast() && !dtype.is_block();
}

// One tensor, one scale: what quantize() needs to treat a piece by itself.
Granularity whole(size_t count) {
  Granularity g;
  g.inner = count;
  return g;
}

constexpr QParams kUnscaled{1.0f, 0.0f};

}  // namespace

Result<TwoStages> TwoStages::create(const QuantizationSpec& first, const QuantizationSpec& second,
                                    const std::vector<uint64_t>& shape) {
  if (!has_scale(first) || !has_scale(second))
    return unfit("a list of specs has scales in every stage; plain casts and block dtypes stand alone");
  if (second.is_scale_quant) {
    if (first.qscheme != QScheme::per_group) return unfit("is_scale_quant needs a first stage that is per_group");
    if (second.qscheme != QScheme::per_tensor) return unfit("scales are quantized per_tensor");
    TRY(granularity, granularity_of(shape, first));
    return TwoStages(first, second, std::move(granularity));
  }
  if (first.qscheme != QScheme::per_tensor || info_of(first.dtype).is_integer)
    return unfit("the first of two stages has a floating dtype and is per_tensor");
  TRY(granularity, granularity_of(shape, second));
  return TwoStages(first, second, std::move(granularity));
}

TwoStages::Scales TwoStages::scales_of(std::span<const float> min, std::span<const float> max) const {
  Scales scales;
  scales.of_codes.resize(min.size());
  if (is_scale_quant()) {
    qparams_of_ranges(min, max, first_, scales.of_codes);
    std::vector<float> scale;
    for (const QParams& q : scales.of_codes) scale.push_back(q.scale);
    const kernels::Extent extent = kernels::reduce_extent(scale);
    scales.other = qparams_of(extent.min, extent.max, second_);
    const uint32_t bytes = code_bytes_of(second_);
    const Granularity g = whole(scale.size());
    std::vector<uint8_t> codes(scale.size() * bytes);
    wasmquant::quantize(g, second_, {&scales.other, 1}, kernels::Path::real, scale, 0, codes.data());
    wasmquant::dequantize(g, second_, {&scales.other, 1}, codes.data(), scale.size(), 0, scale.data());
    scales.scale_codes.resize(scale.size());
    for (size_t i = 0; i < scale.size(); ++i) {
      std::memcpy(&scales.scale_codes[i], &codes[i * bytes], bytes);
      // Scales that became zero would divide by it; any other does as well, for nothing can be read back through them.
      scales.of_codes[i].scale = scale[i] != 0 ? scale[i] : kScaleEpsilon;
    }
    return scales;
  }
  float low = 0, high = 0;
  for (size_t i = 0; i < min.size(); ++i) {
    if (min[i] > max[i]) continue;
    low = std::min(low, min[i]);
    high = std::max(high, max[i]);
  }
  scales.other = qparams_of(low, high, first_);
  // The cast is monotonous: the ends of a range of codes are the codes of its ends.
  const FloatFormat format = float_format_of(first_);
  const auto number = [&](float v) {
    return decode(format, encode(format, v / scales.other.scale, Overflow::saturate));
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

void TwoStages::quantize(const Scales& scales, std::span<const float> x, uint64_t begin, uint8_t* codes) const {
  if (is_scale_quant())
    return wasmquant::quantize(granularity_, first_, scales.of_codes, kernels::Path::real, x, begin, codes);
  const FloatFormat format = float_format_of(first_);
  float number[kChunk];
  for (size_t at = 0; at < x.size(); at += kChunk) {
    const size_t count = std::min(kChunk, x.size() - at);
    for (size_t i = 0; i < count; ++i)
      number[i] = decode(format, encode(format, x[at + i] / scales.other.scale, Overflow::saturate));
    wasmquant::quantize(granularity_, second_, scales.of_codes, kernels::Path::real, {number, count}, begin + at,
                        codes + at * code_bytes_of(second_));
  }
}

void TwoStages::dequantize(const Scales& scales, const uint8_t* codes, uint64_t count, uint64_t begin, float* y) const {
  wasmquant::dequantize(granularity_, code_spec(), scales.of_codes, codes, count, begin, y);
  if (is_scale_quant()) return;
  const Granularity g = whole(static_cast<size_t>(count));
  fake_quantize(g, first_, {&kUnscaled, 1}, {y, static_cast<size_t>(count)}, 0, y);
  for (uint64_t i = 0; i < count; ++i) y[i] *= scales.other.scale;
}

}  // namespace wasmquant
