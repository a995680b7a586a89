// Codes and values by runs of equal granularity. The dtype family is chosen once; inside, one call to a kernel per run.
//   shared run: one scale for all its elements           -> the kernel as it is
//   each-run:   a scale per element, the same for the rows below it -> kPatch columns of inverses, used for every row
#include "quantize/quantize.h"

#include <algorithm>

namespace wasmquant {
namespace {

using kernels::Affine;
using kernels::Path;

constexpr size_t kPatch = 256;

// `rows` rows of `columns` elements, `pitch` apart; column i of every row has scale `scale` + i.
struct Patch {
  size_t begin;  // offset in the piece
  size_t rows, pitch, columns;
  size_t scale;
};

// Runs of the piece [begin, begin + count), offsets relative to it: shared(offset, count, scale) and each(Patch).
template <class Shared, class Each>
void visit_runs(const Granularity& g, uint64_t begin, size_t count, Shared&& shared, Each&& each) {
  Patch rows{0, 0, 0, 0, 0};
  const auto flush = [&] {
    for (size_t c = 0; rows.rows != 0 && c < rows.pitch; c += kPatch)
      each(Patch{rows.begin + c, rows.rows, rows.pitch, std::min(kPatch, rows.pitch - c), rows.scale + c});
  };
  for_each_run(g, begin, begin + count, [&](const Run& run) {
    const auto at = static_cast<size_t>(run.begin - begin), length = static_cast<size_t>(run.count);
    const auto scale = static_cast<size_t>(run.scale);
    if (run.scale_stride == 0) return shared(at, length, scale);
    if (rows.rows != 0 && rows.scale == scale && rows.pitch == length) {
      ++rows.rows;
    } else {
      flush();
      rows = {at, 1, length, length, scale};
    }
  });
  flush();
}

bool has_fractional_zero_point(const QuantizationSpec& spec) noexcept {
  return info_of(spec.dtype).is_integer && !spec.symmetric && spec.zero_point_type == ZeroPointType::float32;
}

// Scales and zero points of a patch, one array each.
struct PatchScales {
  float scale[kPatch], zero_point[kPatch];
  PatchScales(std::span<const QParams> qparams, const Patch& p) noexcept {
    for (size_t i = 0; i < p.columns; ++i) {
      scale[i] = qparams[p.scale + i].scale;
      zero_point[i] = qparams[p.scale + i].zero_point;
    }
  }
};

void quantize_codes8(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams, Path path,
                     std::span<const float> x, uint64_t begin, uint8_t* codes) noexcept {
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    kernels::quantize_codes8(x.subspan(at, count), affine_of(qparams[scale], spec), spec.round_method, path,
                             codes + at);
  };
  visit_runs(g, begin, x.size(), shared, [&](const Patch& p) {
    float inverse[kPatch], zero_point[kPatch];
    for (size_t i = 0; i < p.columns; ++i) {
      inverse[i] = affine_of(qparams[p.scale + i], spec).inverse;
      zero_point[i] = qparams[p.scale + i].zero_point;
    }
    const DtypeInfo& dtype = info_of(spec.dtype);
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.begin + row * p.pitch;
      kernels::quantize_codes8_each(x.subspan(at, p.columns), inverse, zero_point, static_cast<float>(dtype.quant_min),
                                    static_cast<float>(dtype.quant_max), spec.round_method, path, codes + at);
    }
  });
}

void quantize_codes16(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams, Path path,
                      std::span<const float> x, uint64_t begin, uint16_t* codes) noexcept {
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    kernels::quantize_codes16(x.subspan(at, count), affine_of(qparams[scale], spec), spec.round_method, path,
                              codes + at);
  };
  visit_runs(g, begin, x.size(), shared, [&](const Patch& p) {
    for (size_t i = 0; i < p.columns; ++i)
      for (size_t row = 0; row < p.rows; ++row) shared(p.begin + row * p.pitch + i, 1, p.scale + i);
  });
}

void quantize_fp8(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                  std::span<const float> x, uint64_t begin, uint8_t* codes) noexcept {
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    kernels::quantize_fp8(x.subspan(at, count), qparams[scale].scale, spec.dtype, codes + at);
  };
  visit_runs(g, begin, x.size(), shared, [&](const Patch& p) {
    const PatchScales s(qparams, p);
    float ratio[kPatch];
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.begin + row * p.pitch;
      for (size_t i = 0; i < p.columns; ++i) ratio[i] = x[at + i] / s.scale[i];
      kernels::quantize_fp8({ratio, p.columns}, 1.0f, spec.dtype, codes + at);  // ratio / 1 is ratio
    }
  });
}

void cast_to_bits(Dtype dtype, std::span<const float> x, uint16_t* bits) noexcept {
  dtype == Dtype::float16 ? kernels::narrow_f16(x, bits) : kernels::narrow_bf16(x, bits);
}

void cast_from_bits(Dtype dtype, std::span<const uint16_t> bits, float* y) noexcept {
  dtype == Dtype::float16 ? kernels::widen_f16(bits, y) : kernels::widen_bf16(bits, y);
}

// (code - zero_point) * scale, with codes of any integer type and a scale per element.
template <class Code>
void dequantize_row(const Code* codes, const PatchScales& s, size_t count, float* y) noexcept {
  for (size_t i = 0; i < count; ++i) y[i] = (static_cast<float>(codes[i]) - s.zero_point[i]) * s.scale[i];
}

void dequantize_codes8(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                       std::span<const uint8_t> codes, uint64_t begin, float* y) noexcept {
  const bool is_signed = info_of(spec.dtype).is_signed;
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    kernels::dequantize_codes8(codes.subspan(at, count), is_signed, affine_of(qparams[scale], spec), y + at);
  };
  visit_runs(g, begin, codes.size(), shared, [&](const Patch& p) {
    const PatchScales s(qparams, p);
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.begin + row * p.pitch;
      if (is_signed)
        dequantize_row(reinterpret_cast<const int8_t*>(codes.data() + at), s, p.columns, y + at);
      else
        dequantize_row(codes.data() + at, s, p.columns, y + at);
    }
  });
}

void dequantize_int16(const Granularity& g, std::span<const QParams> qparams, std::span<const int16_t> codes,
                      uint64_t begin, float* y) noexcept {
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    const QParams q = qparams[scale];
    for (size_t i = at; i < at + count; ++i) y[i] = (static_cast<float>(codes[i]) - q.zero_point) * q.scale;
  };
  visit_runs(g, begin, codes.size(), shared, [&](const Patch& p) {
    const PatchScales s(qparams, p);
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.begin + row * p.pitch;
      dequantize_row(codes.data() + at, s, p.columns, y + at);
    }
  });
}

void dequantize_fp8(const Granularity& g, Dtype dtype, std::span<const QParams> qparams, std::span<const uint8_t> codes,
                    uint64_t begin, float* y) noexcept {
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    kernels::dequantize_fp8(codes.subspan(at, count), qparams[scale].scale, dtype, y + at);
  };
  visit_runs(g, begin, codes.size(), shared, [&](const Patch& p) {
    const PatchScales s(qparams, p);
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.begin + row * p.pitch;
      kernels::dequantize_fp8(codes.subspan(at, p.columns), 1.0f, dtype, y + at);
      for (size_t i = 0; i < p.columns; ++i) y[at + i] *= s.scale[i];
    }
  });
}

}  // namespace

void quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams, Path path,
              std::span<const float> x, uint64_t begin, uint8_t* codes) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (has_fractional_zero_point(spec)) path = Path::real;
  if (dtype.is_plain_cast()) return cast_to_bits(spec.dtype, x, reinterpret_cast<uint16_t*>(codes));
  if (!dtype.is_integer) return quantize_fp8(g, spec, qparams, x, begin, codes);
  if (dtype.code_bytes() == 1) return quantize_codes8(g, spec, qparams, path, x, begin, codes);
  quantize_codes16(g, spec, qparams, path, x, begin, reinterpret_cast<uint16_t*>(codes));
}

void dequantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                const uint8_t* codes, uint64_t count, uint64_t begin, float* y) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const auto length = static_cast<size_t>(count);
  if (dtype.is_plain_cast()) return cast_from_bits(spec.dtype, {reinterpret_cast<const uint16_t*>(codes), length}, y);
  if (!dtype.is_integer) return dequantize_fp8(g, spec.dtype, qparams, {codes, length}, begin, y);
  if (dtype.code_bytes() == 1) return dequantize_codes8(g, spec, qparams, {codes, length}, begin, y);
  dequantize_int16(g, qparams, {reinterpret_cast<const int16_t*>(codes), length}, begin, y);
}

void fake_quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                   std::span<const float> x, uint64_t begin, float* y) noexcept {
  if (!info_of(spec.dtype).is_integer) {  // through the codes
    alignas(2) uint8_t codes[2 * kErrorBlock];
    for (size_t at = 0; at < x.size(); at += kErrorBlock) {
      const size_t count = std::min(kErrorBlock, x.size() - at);
      quantize(g, spec, qparams, Path::fake, x.subspan(at, count), begin + at, codes);
      dequantize(g, spec, qparams, codes, count, begin + at, y + at);
    }
    return;
  }
  const auto shared = [&](size_t at, size_t count, size_t scale) {
    kernels::fake_quantize_int(x.subspan(at, count), affine_of(qparams[scale], spec), spec.round_method, y + at);
  };
  visit_runs(g, begin, x.size(), shared, [&](const Patch& p) {
    if (has_fractional_zero_point(spec) || info_of(spec.dtype).code_bytes() != 1) {
      for (size_t i = 0; i < p.columns; ++i)
        for (size_t row = 0; row < p.rows; ++row) shared(p.begin + row * p.pitch + i, 1, p.scale + i);
      return;
    }
    uint8_t codes[kPatch];
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.begin + row * p.pitch;
      quantize_codes8(g, spec, qparams, Path::fake, x.subspan(at, p.columns), begin + at, codes);
      dequantize_codes8(g, spec, qparams, {codes, p.columns}, begin + at, y + at);
    }
  });
}

void append_quantization_error(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                               std::span<const float> x, const uint8_t* codes, uint64_t begin,
                               kernels::ErrorSums& sums) noexcept {
  const size_t bytes = info_of(spec.dtype).code_bytes();
  float y[kErrorBlock];
  for (size_t at = 0; at < x.size();) {
    const auto to_block_end = static_cast<size_t>(kErrorBlock - (begin + at) % kErrorBlock);
    const size_t count = std::min(to_block_end, x.size() - at);
    dequantize(g, spec, qparams, codes + at * bytes, count, begin + at, y);
    sums.append(kernels::error_between(x.subspan(at, count), y));
    at += count;
  }
}

kernels::ErrorSums quantization_error(const Granularity& g, const QuantizationSpec& spec,
                                      std::span<const QParams> qparams, std::span<const float> x, const uint8_t* codes,
                                      uint64_t begin) noexcept {
  kernels::ErrorSums sums;
  append_quantization_error(g, spec, qparams, x, codes, begin, sums);
  return sums;
}

}  // namespace wasmquant
