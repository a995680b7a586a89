#include "quantize/block_float.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/kernels.h"

namespace wasmquant {
namespace {

BlockFloatFormat format_of(const Granularity& g, const QuantizationSpec& spec) {
  return block_float_of(spec.dtype, static_cast<uint32_t>(g.block));
}

// Elements of one line along the axis, `stride` apart in memory.
template <class T>
void gather(const T* from, size_t count, size_t stride, T* line) {
  for (size_t i = 0; i < count; ++i) line[i] = from[i * stride];
}
template <class T>
void scatter(const T* line, size_t count, size_t stride, T* to) {
  for (size_t i = 0; i < count; ++i) to[i * stride] = line[i];
}

struct Line {
  explicit Line(const Granularity& g)
      : count(static_cast<size_t>(g.axis)),
        blocks(static_cast<size_t>(g.blocks())),
        pairs((count + 1) / 2),
        x(count),
        codes(count),
        exponents(blocks),
        shifts(pairs) {}
  size_t count, blocks, pairs;
  std::vector<float> x;
  std::vector<int8_t> codes;
  std::vector<uint8_t> exponents, shifts;
};

}  // namespace

BlockFloatTensor quantize_blocks(const Granularity& g, const QuantizationSpec& spec, std::span<const float> x) {
  const BlockFloatFormat format = format_of(g, spec);
  const auto inner = static_cast<size_t>(g.inner), outer = static_cast<size_t>(g.outer);
  Line line(g);
  BlockFloatTensor t;
  t.codes.resize(x.size());
  t.exponents.resize(outer * line.blocks * inner);
  if (format.pair_shift) t.shifts.resize(outer * line.pairs * inner);
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) {
      gather(x.data() + o * line.count * inner + i, line.count, inner, line.x.data());
      kernels::quantize_block_float(line.x, format, line.exponents.data(), line.shifts.data(), line.codes.data());
      scatter(line.codes.data(), line.count, inner, t.codes.data() + o * line.count * inner + i);
      scatter(line.exponents.data(), line.blocks, inner, t.exponents.data() + o * line.blocks * inner + i);
      if (format.pair_shift)
        scatter(line.shifts.data(), line.pairs, inner, t.shifts.data() + o * line.pairs * inner + i);
    }
  }
  return t;
}

void dequantize_blocks(const Granularity& g, const QuantizationSpec& spec, const BlockFloatTensor& t, float* y) {
  const BlockFloatFormat format = format_of(g, spec);
  const auto inner = static_cast<size_t>(g.inner), outer = static_cast<size_t>(g.outer);
  Line line(g);
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) {
      gather(t.codes.data() + o * line.count * inner + i, line.count, inner, line.codes.data());
      gather(t.exponents.data() + o * line.blocks * inner + i, line.blocks, inner, line.exponents.data());
      if (format.pair_shift)
        gather(t.shifts.data() + o * line.pairs * inner + i, line.pairs, inner, line.shifts.data());
      kernels::dequantize_block_float(line.codes, format, line.exponents.data(), line.shifts.data(), line.x.data());
      scatter(line.x.data(), line.count, inner, y + o * line.count * inner + i);
    }
  }
}

void fake_quantize_blocks(const Granularity& g, const QuantizationSpec& spec, std::span<const float> x, float* y) {
  const BlockFloatFormat format = format_of(g, spec);
  const auto inner = static_cast<size_t>(g.inner);
  Line line(g);
  std::vector<float> value(line.count);
  for (size_t at = 0; at < x.size(); at += line.count * inner) {
    for (size_t i = 0; i < inner; ++i) {
      gather(x.data() + at + i, line.count, inner, line.x.data());
      kernels::quantize_block_float(line.x, format, line.exponents.data(), line.shifts.data(), line.codes.data());
      kernels::dequantize_block_float(line.codes, format, line.exponents.data(), line.shifts.data(), value.data());
      if (format.pair_shift)
        for (size_t k = 0; k < line.count; ++k)
          if (!std::isfinite(line.x[k])) value[k] = line.x[k];
      scatter(value.data(), line.count, inner, y + at + i);
    }
  }
}

}  // namespace wasmquant
