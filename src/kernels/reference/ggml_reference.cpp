// Scalar oracles of ggml_stages.h: one sub-block at a time, one element at a time, in ggml's order of operations. They
// share nothing with the SIMD bodies.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/ggml_stages.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels::reference {
namespace {

/// Nearest even below 2^22; beyond it, what the low 23 bits give.
int32_t nearest_int(float v) {
  if (std::isnan(v)) return 0;
  const auto bits = std::bit_cast<int32_t>(v + 12582912.0f);
  return (bits & 0x7FFFFF) - 0x400000;
}

int32_t nearest_between(float v, float low, float high) {
  return std::clamp(nearest_int(v), static_cast<int32_t>(low), static_cast<int32_t>(high));
}

size_t nearest_iq4(float v) {
  size_t best = 0;
  const float twice = v + v;
  for (size_t i = 1; i < 16; ++i)
    if (!(twice < static_cast<float>(kIq4Values[i - 1] + kIq4Values[i]))) best = i;
  return best;
}

struct Weights {
  float of[32];
  float sum;
};

Weights weights_of(const SearchInput& in, size_t block) {
  const float* x = in.x + block * in.length;
  const float* importance = in.importance ? in.importance + block * in.length : nullptr;
  Weights w{};
  float squares = 0;
  for (size_t i = 0; i < in.length; ++i) squares += x[i] * x[i];
  const float rms = std::sqrt(squares / 32);
  for (size_t i = 0; i < in.length; ++i) {
    switch (in.weighting) {
      case Weighting::magnitude:
        w.of[i] = std::fabs(x[i]);
        break;
      case Weighting::rms_magnitude:
        w.of[i] = rms + std::fabs(x[i]);
        break;
      case Weighting::square:
        w.of[i] = x[i] * x[i];
        break;
      case Weighting::given:
        w.of[i] = importance[i];
        break;
      case Weighting::given_energy:
        w.of[i] = importance[i] * std::sqrt(in.energy[block] + x[i] * x[i]);
        break;
    }
    w.sum += w.of[i];
  }
  return w;
}

/// The element of the largest magnitude, the first of equals; 0 when all are zero.
float extreme_of(const float* x, size_t count) {
  float extreme = 0;
  for (size_t i = 0; i < count; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  return extreme;
}

struct Fit {
  float scale, minimum;
};

/// One sub-block under fixed weights.
struct AffineProblem {
  const float* x;
  size_t length;
  const Weights& w;
  const AffineSearch& search;

  float error(Fit fit, const int32_t* codes) const {
    float sum = 0;
    for (size_t i = 0; i < length; ++i) {
      const float diff = fit.scale * static_cast<float>(codes[i]) + fit.minimum - x[i];
      sum += w.of[i] * (search.absolute_error ? std::fabs(diff) : diff * diff);
    }
    return sum;
  }

  /// The best scale and minimum for the codes; false if there is none.
  bool fit(const int32_t* codes, Fit& fit) const {
    float sum_x = 0, sum_l = 0, sum_l2 = 0, sum_xl = 0;
    for (size_t i = 0; i < length; ++i) {
      const auto l = static_cast<float>(codes[i]);
      sum_x += w.of[i] * x[i];
      sum_l += w.of[i] * l;
      sum_l2 += w.of[i] * l * l;
      sum_xl += w.of[i] * l * x[i];
    }
    const float determinant = w.sum * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0)) return false;
    fit = {(w.sum * sum_xl - sum_x * sum_l) / determinant, (sum_l2 * sum_x - sum_l * sum_xl) / determinant};
    if (fit.minimum > 0) fit = {sum_xl / sum_l2, 0};
    return true;
  }
};

/// Call in element order: the first element that shares a byte clears it.
void store_code(uint8_t code, size_t in_run, RunPacking packing, uint8_t* bytes) {
  if (packing == RunPacking::bytes) {
    bytes[in_run] = code;
    return;
  }
  if (packing == RunPacking::fifths) {
    uint8_t& bits = bytes[in_run / 8];
    bits = static_cast<uint8_t>((in_run % 8 == 0 ? 0 : bits) | (code >> 4 & 1) << in_run % 8);
    bytes += 4;
  }
  constexpr size_t kHalf = kExtentRun / 2;
  if (in_run < kHalf)
    bytes[in_run] = code & 15;
  else
    bytes[in_run - kHalf] |= static_cast<uint8_t>(code << 4);
}

}  // namespace

void block_extents(const float* x, size_t runs, float* low, float* high) noexcept {
  for (size_t run = 0; run < runs; ++run, x += kExtentRun) {
    low[run] = *std::min_element(x, x + kExtentRun);
    high[run] = *std::max_element(x, x + kExtentRun);
  }
}

void block_codes(Coding coding, const float* x, size_t count, size_t run, const float* add, const float* factor,
                 const CodeRange& range, uint8_t* codes) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const float shifted = x[i] + add[i / run], by = factor[i / run];
    const float position = coding == Coding::divided ? shifted / by : shifted * by;
    int32_t code = 0;
    if (coding == Coding::away)
      code = static_cast<int32_t>(std::round(position));
    else if (coding == Coding::nearest)
      code = static_cast<int32_t>(std::nearbyint(position > range.low ? std::min(position, range.high) : range.low));
    else
      code = nearest_between(position, range.low, range.high);
    codes[i] = static_cast<uint8_t>(code + range.offset);
  }
}

ErrorSums measured_codes(const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                         const RunBytes& to) noexcept {
  std::vector<float> values(runs * kExtentRun);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t run = i / kExtentRun, in_run = i % kExtentRun;
    float code, scale = parameters.scale[run];
    if (coding.is_rounded) {
      code = std::round(x[i] * parameters.factor[run]);
      values[i] = code * scale;
    } else if (coding.has_minimum) {
      code = std::min(coding.high, std::floor((x[i] + parameters.add[run]) * parameters.factor[run] + coding.bias));
      values[i] = code * scale + parameters.minimum[run];
    } else {
      code = std::min(coding.high, std::floor(x[i] * parameters.factor[run] + coding.bias));
      values[i] = (code - coding.center) * scale;
    }
    const auto byte = std::isnan(code) ? uint8_t{0} : static_cast<uint8_t>(static_cast<int32_t>(code));
    store_code(byte, in_run, to.packing, to.bytes + run * to.stride);
  }
  return error_in_lanes({x, values.size()}, values.data());
}

bool run_scales(const float* low, const float* high, size_t runs, float levels, bool has_minimum, float* scale,
                float* factor, float* add) noexcept {
  bool any_unusable = false;
  for (size_t i = 0; i < runs; ++i) {
    const bool is_high = high[i] > -low[i];
    const float extent = has_minimum ? high[i] - low[i] : is_high ? high[i] : levels > 0 ? -low[i] : low[i];
    scale[i] = (extent + 0.0f) / levels;
    factor[i] = 1 / scale[i];
    add[i] = -low[i];
    if (!std::isfinite(factor[i])) factor[i] = 0;
    any_unusable |= factor[i] == 0 && scale[i] != 0;
  }
  return any_unusable;
}

void iq4_codes(const float* x, size_t count, size_t run, const float* factor, uint8_t* codes) noexcept {
  for (size_t i = 0; i < count; ++i) codes[i] = static_cast<uint8_t>(nearest_iq4(factor[i / run] * x[i]));
}

void fp4_codes(const float* x, size_t count, const float* factor, uint8_t* codes) noexcept {
  constexpr float kValues[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  for (size_t i = 0; i < count; ++i) {
    size_t best = 0;
    const float v = x[i] * factor[i / 32];
    for (size_t k = 1; k < 16; ++k)
      if (std::fabs(kValues[k] - v) < std::fabs(kValues[best] - v)) best = k;
    codes[i] = static_cast<uint8_t>(best);
  }
}

void search_affine(const SearchInput& in, const AffineSearch& search, SearchResult& out) noexcept {
  for (size_t block = 0; block < kSearchWidth; ++block) {
    const float* x = in.x + block * in.length;
    const Weights w = weights_of(in, block);
    const AffineProblem problem{x, in.length, w, search};
    const float least_x = *std::min_element(x, x + in.length), high = *std::max_element(x, x + in.length);
    const float low = least_x > 0 ? 0 : least_x;
    out.weight[block] = w.sum;
    out.is_empty[block] = false;
    out.scale[block] = 0;
    out.minimum[block] = low;
    out.factor[block] = 0;
    out.add[block] = -low;
    if (high == low) continue;

    int32_t codes[32];
    float factor = search.levels / (high - low);
    Fit best{1 / factor, low};
    for (size_t i = 0; i < in.length; ++i) codes[i] = nearest_between(factor * (x[i] - low), 0, search.levels);
    float least = problem.error(best, codes);
    out.factor[block] = std::isinf(factor) ? 0 : factor;  // infinite positions wrap to code 0
    for (int32_t step = 0; step <= search.steps; ++step) {
      const float from = best.minimum;
      factor = (search.first + search.step * static_cast<float>(step) + search.levels) / (high - from);
      for (size_t i = 0; i < in.length; ++i) {
        const float position = factor * (x[i] - from);
        if (search.guarded)
          codes[i] = position > 0 ? nearest_int(std::min(position, search.levels)) : 0;
        else
          codes[i] = nearest_between(position, 0, search.levels);
      }
      Fit fit;
      if (!problem.fit(codes, fit)) continue;
      const float error = problem.error(fit, codes);
      if (!(error < least)) continue;
      least = error;
      best = fit;
      out.factor[block] = factor;
      out.add[block] = -from;
    }
    out.scale[block] = best.scale;
    out.minimum[block] = best.minimum;
  }
}

void search_symmetric(const SearchInput& in, float levels, SearchResult& out) noexcept {
  for (size_t block = 0; block < kSearchWidth; ++block) {
    const float* x = in.x + block * in.length;
    const Weights w = weights_of(in, block);
    const float extreme = extreme_of(x, in.length);
    out.weight[block] = w.sum;
    out.scale[block] = out.minimum[block] = out.factor[block] = out.add[block] = 0;
    out.is_empty[block] = std::fabs(extreme) < 1e-15f;
    if (out.is_empty[block]) continue;

    float best = 0;
    for (int32_t k = -10; k <= 9; ++k) {  // -10: the plain scale, tried first
      if (k == 0) continue;
      const float tenths = k == -10 ? 0.0f : 0.1f * static_cast<float>(k);
      const float factor = -(levels + tenths) / extreme;
      float sum_xl = 0, sum_l2 = 0;
      for (size_t i = 0; i < in.length; ++i) {
        const auto l = static_cast<float>(nearest_between(factor * x[i], -levels, levels - 1));
        sum_xl += w.of[i] * x[i] * l;
        sum_l2 += w.of[i] * l * l;
      }
      const bool is_plain = k == -10;
      if (!is_plain && !(sum_l2 > 0 && sum_xl * sum_xl > best * sum_l2)) continue;
      out.scale[block] = sum_l2 == 0 ? 0 : sum_xl / sum_l2;
      best = out.scale[block] * sum_xl;
      out.factor[block] = factor;
    }
  }
}

void search_descent(const float* x, float* scale, uint8_t* codes) noexcept {
  for (size_t block = 0; block < kSearchWidth; ++block, x += 16, codes += 16) {
    const float extreme = extreme_of(x, 16);
    std::fill(codes, codes + 16, uint8_t{0});
    scale[block] = 0;
    if (std::fabs(extreme) < 1e-15f) continue;

    const float factor = -4 / extreme;
    float l[16], sum_xl = 0, sum_l2 = 0;
    for (size_t i = 0; i < 16; ++i) {
      const float w = x[i] * x[i];
      l[i] = static_cast<float>(nearest_between(factor * x[i], -4, 3));
      sum_xl += w * x[i] * l[i];
      sum_l2 += w * l[i] * l[i];
    }
    bool has_changed = true;
    for (int round = 0; round < 5 && has_changed; ++round) {
      has_changed = false;
      for (size_t i = 0; i < 16; ++i) {
        const float w = x[i] * x[i];
        float xl = sum_xl - w * x[i] * l[i], l2 = sum_l2 - w * l[i] * l[i];
        if (!(xl > 0)) continue;
        const auto other = static_cast<float>(nearest_between(x[i] * l2 / xl, -4, 3));
        if (other == l[i]) continue;
        xl += w * x[i] * other;
        l2 += w * other * other;
        if (!(l2 > 0 && xl * xl * sum_l2 > sum_xl * sum_xl * l2)) continue;
        l[i] = other;
        sum_xl = xl;
        sum_l2 = l2;
        has_changed = true;
      }
    }
    for (size_t i = 0; i < 16; ++i) codes[i] = static_cast<uint8_t>(static_cast<int32_t>(l[i]) + 4);
    scale[block] = sum_l2 > 0 ? sum_xl / sum_l2 : 0;
  }
}

void search_iq4(const SearchInput& in, float* scale) noexcept {
  for (size_t block = 0; block < kSearchWidth; ++block) {
    const float* x = in.x + block * in.length;
    const Weights w = weights_of(in, block);
    const float extreme = extreme_of(x, in.length);
    scale[block] = 0;
    if (std::fabs(extreme) < 1e-15f) continue;
    float best = 0;
    for (int32_t k = -8; k <= 7; ++k) {  // -8: the plain scale, tried first
      const bool is_plain = k == -8;
      const float factor = is_plain ? 1 / (-extreme / kIq4Values[0]) : static_cast<float>(k + kIq4Values[0]) / extreme;
      float sum_xq = 0, sum_q2 = 0;
      for (size_t i = 0; i < in.length; ++i) {
        const auto q = static_cast<float>(kIq4Values[nearest_iq4(factor * x[i])]);
        sum_xq += w.of[i] * q * x[i];
        sum_q2 += w.of[i] * q * q;
      }
      if (is_plain ? !(sum_q2 > 0) : !(sum_q2 > 0 && sum_xq * sum_xq > best * sum_q2)) continue;
      scale[block] = sum_xq / sum_q2;
      best = scale[block] * sum_xq;
    }
  }
}

}  // namespace wasmquant::kernels::reference
