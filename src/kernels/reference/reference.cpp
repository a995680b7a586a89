// One function for each kernel; numbers and rules are those of src/numeric.
#include "kernels/reference/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/error_lanes.h"

namespace wasmquant::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr FloatFormat kFloat16 = float_format_of(Dtype::float16);
constexpr FloatFormat kBfloat16 = float_format_of(Dtype::bfloat16);

bool is_finite(float v) noexcept { return (std::bit_cast<uint32_t>(v) & 0x7FFFFFFF) < 0x7F800000; }

/// Position on the code grid, before it is clamped to an integer.
float grid_position(float x, float inverse, float zero_point, float quant_min, float quant_max, RoundMethod round,
                    Path path) noexcept {
  if (x != x) x = 0.0f;
  const float v = x * inverse;
  const float q = path == Path::fake ? apply_rounding(round, v) + zero_point : apply_rounding(round, v + zero_point);
  return clamp(q, quant_min, quant_max);
}

using Lanes = std::array<float, kErrorLanes>;

double sum_of(const Lanes& lanes) noexcept {
  std::array<double, kErrorLanes> sum;
  std::copy(lanes.begin(), lanes.end(), sum.begin());
  for (size_t width = kErrorLanes / 2; width > 0; width /= 2)
    for (size_t j = 0; j < width; ++j) sum[j] += sum[j + width];
  return sum[0];
}

template <class Code>
void quantize_codes(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                    Code* codes) noexcept {
  for (size_t i = 0; i < x.size(); ++i) {
    const Affine& a = grids[i / run];
    const float q = grid_position(x[i], a.inverse, a.zero_point, a.quant_min, a.quant_max, round, path);
    codes[i] = static_cast<Code>(static_cast<int32_t>(std::nearbyint(q)));
  }
}

}  // namespace

Extent reduce_extent(std::span<const float> x) noexcept {
  Extent e{kInfinity, -kInfinity, true};
  for (float v : x) {
    if (!is_finite(v)) {
      e.all_finite = false;
      continue;
    }
    e.min = v < e.min ? v : e.min;
    e.max = v > e.max ? v : e.max;
  }
  e.min += 0.0f;  // -0 to +0
  e.max += 0.0f;
  return e;
}

AbsMax reduce_absmax(std::span<const float> x) noexcept {
  AbsMax a{0.0f, true};
  for (float v : x) {
    if (is_finite(v))
      a.value = std::max(a.value, std::fabs(v));
    else
      a.all_finite = false;
  }
  return a;
}

bool reduce_absmax_runs(std::span<const float> x, size_t run, float* max) noexcept {
  bool all_finite = true;
  for (size_t begin = 0; begin < x.size(); begin += run) {
    const AbsMax a = reduce_absmax(x.subspan(begin, std::min(run, x.size() - begin)));
    max[begin / run] = a.value;
    all_finite &= a.all_finite;
  }
  return all_finite;
}

int64_t find_non_finite(std::span<const float> x) noexcept {
  for (size_t i = 0; i < x.size(); ++i)
    if (!is_finite(x[i])) return static_cast<int64_t>(i);
  return -1;
}

bool accumulate_extent(std::span<const float> x, float* min, float* max) noexcept {
  bool all_finite = true;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_finite(x[i])) {
      all_finite = false;
      continue;
    }
    min[i] = x[i] < min[i] ? x[i] : min[i];
    max[i] = x[i] > max[i] ? x[i] : max[i];
  }
  return all_finite;
}

void quantize_codes8(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                     uint8_t* codes) noexcept {
  quantize_codes(x, grids, run, round, path, codes);
}

void quantize_codes16(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                      uint16_t* codes) noexcept {
  quantize_codes(x, grids, run, round, path, codes);
}

void quantize_codes8_each(std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                          float quant_max, RoundMethod round, Path path, uint8_t* codes) noexcept {
  for (size_t i = 0; i < x.size(); ++i) {
    const Affine a{0, inverse[i], zero_point[i], quant_min, quant_max};
    quantize_codes(x.subspan(i, 1), &a, 1, round, path, codes + i);
  }
}

void dequantize_codes8(std::span<const uint8_t> codes, bool is_signed, const Affine* grids, size_t run,
                       float* y) noexcept {
  for (size_t i = 0; i < codes.size(); ++i) {
    const Affine& a = grids[i / run];
    const int32_t code = is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
    y[i] = (static_cast<float>(code) - a.zero_point) * a.scale;
  }
}

void fake_quantize_int(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round,
                       float* y) noexcept {
  for (size_t i = 0; i < x.size(); ++i) {
    const Affine& a = grids[i / run];
    const float q = grid_position(x[i], a.inverse, a.zero_point, a.quant_min, a.quant_max, round, Path::fake);
    y[i] = (q - a.zero_point) * a.scale;
  }
}

void divide(std::span<const float> x, const float* divisors, size_t stride, float* y) noexcept {
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / divisors[i * stride];
}

void quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                    uint8_t* codes) noexcept {
  for (size_t i = 0; i < x.size(); ++i)
    codes[i] = static_cast<uint8_t>(encode(format, x[i] != x[i] ? x[i] : x[i] / scales[i / run], Overflow::saturate));
}

void dequantize_float(std::span<const uint8_t> codes, const float* scales, size_t run, const FloatFormat& format,
                      float* y) noexcept {
  for (size_t i = 0; i < codes.size(); ++i) {
    const float value = decode(format, codes[i]);
    y[i] = value != value ? value : value * scales[i / run];
  }
}

void fake_quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                         float* y) noexcept {
  for (size_t i = 0; i < x.size(); ++i) {
    const bool passes = format.has_nan() ? x[i] != x[i] : !is_finite(x[i]);
    y[i] = passes ? x[i] : decode(format, encode(format, x[i] / scales[i / run], Overflow::saturate)) * scales[i / run];
  }
}

namespace {

// mx6 and mx9: non-finite and subnormal elements count as zero.
float normal_part(float v) noexcept {
  const uint32_t exponent = std::bit_cast<uint32_t>(v) >> 23 & 0xFF;
  return exponent == 0 || exponent == 0xFF ? std::copysign(0.0f, v) : v;
}

uint8_t quantize_pair_shift_block(std::span<const float> x, const BlockFloatFormat& format, uint8_t* shifts,
                                  int8_t* codes) noexcept {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::fabs(normal_part(v)));
  const uint32_t field = std::bit_cast<uint32_t>(largest) >> 23;
  const int exponent = static_cast<int>(field) - kBlockExponentBias;
  const double limit = format.code_limit();
  for (size_t i = 0; i < x.size(); i += 2) {
    const float pair[2] = {normal_part(x[i]), i + 1 < x.size() ? normal_part(x[i + 1]) : 0.0f};
    const float pair_largest = std::max(std::fabs(pair[0]), std::fabs(pair[1]));
    const int shift = std::bit_cast<uint32_t>(pair_largest) >> 23 < field ? 1 : 0;
    shifts[i / 2] = static_cast<uint8_t>(shift);
    for (size_t k = 0; k < 2 && i + k < x.size(); ++k) {
      const double units = pair[k] * power_of_two(format.fraction_bits() + shift - exponent);
      codes[i + k] = static_cast<int8_t>(std::clamp(std::nearbyint(units), -limit, limit));
    }
  }
  return static_cast<uint8_t>(field);
}

// bfp16: exponent of the largest magnitude, plus one if rounding would need a code beyond 127.
uint8_t quantize_plain_block(std::span<const float> x, const BlockFloatFormat& format, int8_t* codes) noexcept {
  float largest = 0;
  for (const float v : x)
    if (is_finite(v)) largest = std::max(largest, std::fabs(v));
  int exponent = kZeroBlockExponent;
  if (largest != 0) exponent = std::max(std::ilogb(largest), -126);
  const auto code_of = [&](float v) {
    return std::nearbyint((is_finite(v) ? v : 0.0f) * power_of_two(format.fraction_bits() - exponent));
  };
  for (const float v : x) {
    if (code_of(v) > format.code_limit()) {
      ++exponent;
      break;
    }
  }
  for (size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<int8_t>(code_of(x[i]));
  return static_cast<uint8_t>(exponent + kBlockExponentBias);
}

}  // namespace

void quantize_block_float(std::span<const float> row, const BlockFloatFormat& format, uint8_t* exponents,
                          uint8_t* shifts, int8_t* codes) noexcept {
  for (size_t begin = 0; begin < row.size(); begin += format.block) {
    const std::span<const float> block = row.subspan(begin, std::min<size_t>(format.block, row.size() - begin));
    *exponents++ = format.pair_shift ? quantize_pair_shift_block(block, format, shifts + begin / 2, codes + begin)
                                     : quantize_plain_block(block, format, codes + begin);
  }
}

void dequantize_block_float(std::span<const int8_t> codes, const BlockFloatFormat& format, const uint8_t* exponents,
                            const uint8_t* shifts, float* y) noexcept {
  for (size_t i = 0; i < codes.size(); ++i) {
    const int shift = format.pair_shift ? shifts[i / 2] : 0;
    const int exponent = exponents[i / format.block] - kBlockExponentBias - shift - format.fraction_bits();
    y[i] = static_cast<float>(codes[i] * power_of_two(exponent));
  }
}

void widen_bf16(std::span<const uint16_t> bits, float* x) noexcept {
  for (size_t i = 0; i < bits.size(); ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(bits[i]) << 16);
}

void widen_f16(std::span<const uint16_t> bits, float* x) noexcept {
  for (size_t i = 0; i < bits.size(); ++i) x[i] = decode(kFloat16, bits[i]);
}

void narrow_bf16(std::span<const float> x, uint16_t* bits) noexcept {
  for (size_t i = 0; i < x.size(); ++i) bits[i] = static_cast<uint16_t>(encode(kBfloat16, x[i], Overflow::infinity));
}

void narrow_f16(std::span<const float> x, uint16_t* bits) noexcept {
  for (size_t i = 0; i < x.size(); ++i) bits[i] = static_cast<uint16_t>(encode(kFloat16, x[i], Overflow::infinity));
}

void pack_nibbles(std::span<const uint8_t> codes, uint32_t offset, uint8_t* bytes) noexcept {
  for (size_t i = 0; i < codes.size(); i += 2) {
    const uint32_t low = (codes[i] + offset) & 15;
    const uint32_t high = i + 1 < codes.size() ? (codes[i + 1] + offset) & 15 : 0;
    bytes[i / 2] = static_cast<uint8_t>(low | high << 4);
  }
}

void unpack_nibbles(std::span<const uint8_t> bytes, size_t count, uint32_t offset, bool is_signed,
                    uint8_t* codes) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t nibble = i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
    const uint32_t code = (nibble - offset) & 15;
    codes[i] = static_cast<uint8_t>(is_signed && code >= 8 ? code - 16 : code);
  }
}

ErrorSums error_in_float64(std::span<const float> x, const float* y) noexcept {
  ErrorSums sums;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool has_x = is_finite(x[i]), has_y = is_finite(y[i]);
    sums.x_not_finite += has_x ? 0 : 1;
    sums.y_not_finite += has_y ? 0 : 1;
    if (!has_x || !has_y) continue;
    const double original = x[i], value = y[i], difference = original - value;
    sums.signal += original * original;
    sums.quantized += value * value;
    sums.noise += difference * difference;
    sums.max_abs = std::max(sums.max_abs, std::fabs(x[i] - y[i]));
    ++sums.count;
  }
  return sums;
}

ErrorSums error_in_lanes(std::span<const float> x, const float* y) noexcept {
  Lanes signal{}, quantized{}, noise{};
  ErrorSums sums;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t j = i % kErrorLanes;
    const float difference = x[i] - y[i];
    signal[j] += x[i] * x[i];
    quantized[j] += y[i] * y[i];
    noise[j] += difference * difference;
    sums.max_abs = std::max(sums.max_abs, std::fabs(difference));
  }
  sums.signal = sum_of(signal);
  sums.quantized = sum_of(quantized);
  sums.noise = sum_of(noise);
  sums.count = x.size();
  return sums;
}

ErrorSums quantize_measured(std::span<const float> x, const Affine* grids, size_t run, uint8_t* codes) noexcept {
  float values[kErrorBlock];
  reference::quantize_codes8(x, grids, run, RoundMethod::half_even, Path::real, codes);
  const bool is_signed = grids[0].quant_min < 0;
  reference::dequantize_codes8({codes, x.size()}, is_signed, grids, run, values);
  return reference::error_in_lanes(x, values);
}

ErrorSums error_between(std::span<const float> x, const float* y) noexcept {
  ErrorSums total;
  for (size_t begin = 0; begin < x.size(); begin += kErrorBlock) {
    const std::span<const float> block = x.subspan(begin, std::min(kErrorBlock, x.size() - begin));
    const ErrorSums sums = error_in_lanes(block, y + begin);
    total.append(is_in_range(sums) ? sums : error_in_float64(block, y + begin));
  }
  return total;
}

}  // namespace wasmquant::kernels::reference

namespace wasmquant::kernels {

bool is_in_range(const ErrorSums& block) noexcept {
  const auto fits = [](double energy) { return energy >= 1e-30 && energy <= 1e30; };
  return fits(block.signal) && fits(block.quantized) && (block.max_abs == 0.0f || fits(block.noise));
}

}  // namespace wasmquant::kernels
