// Quantizes and dequantizes a span of elements, one operation per dtype family and direction. runs.h cuts the span, the
// kernels compute. Grids that divide are passed quotients, with `inverse` 1.
#include "quantize/quantize.h"

#include <algorithm>
#include <cmath>

#include "kernels/error_lanes.h"
#include "quantize/runs.h"

namespace wasmquant {
namespace {

using kernels::Affine;
using kernels::Path;

bool has_fractional_zero_point(const QuantizationSpec& spec) noexcept {
  return info_of(spec.dtype).is_integer && !spec.symmetric && spec.zero_point_type == ZeroPointType::float32;
}

Path path_of(const QuantizationSpec& spec, Path path) noexcept {
  if (has_fractional_zero_point(spec) || spec.grid.zero_point_order == ZeroPointOrder::before_rounding)
    return Path::real;
  return spec.grid.zero_point_order == ZeroPointOrder::after_rounding ? Path::fake : path;
}

// Shared by all operations: the span and its scales. Each uses the pointers that it needs.
struct SpecOperation : RunOperation {
  SpecOperation(const QuantizationSpec& piece_spec, std::span<const QParams> scales) noexcept
      : spec(piece_spec), grid(piece_spec), q(scales) {}

  // A column of a patch as runs of one element, for operations without a faster way.
  void patch(const Patch& p) noexcept override {
    for (size_t row = 0; row < p.rows; ++row)
      for (size_t i = 0; i < p.columns; i += kRuns)
        runs({p.at + row * p.pitch + i, std::min(kRuns, p.columns - i), p.scale + i, 1});
  }

  const QuantizationSpec& spec;
  AffineRule grid;
  std::span<const QParams> q;
  const float* x = nullptr;
  float* y = nullptr;
  uint8_t* codes = nullptr;
  Path path = Path::real;
};

struct Grids {
  Affine of[kRuns];
  Grids(const SpecOperation& piece, const ScaleRuns& r) noexcept {
    for (size_t i = 0; i < r.runs(); ++i) of[i] = piece.grid(piece.q[r.scale + i]);
  }
};

struct Scales {
  float of[kRuns];
  Scales(const SpecOperation& piece, const ScaleRuns& r) noexcept {
    for (size_t i = 0; i < r.runs(); ++i) of[i] = piece.q[r.scale + i].scale;
  }
};

// The grids of a patch, one array per field. Only quantizing needs inverses.
struct PatchGrids {
  float scale[kPatch], inverse[kPatch], zero_point[kPatch];
  float quant_min, quant_max;
  PatchGrids(const SpecOperation& piece, const Patch& p, bool makes_codes) noexcept
      : quant_min(piece.grid.quant_min()), quant_max(piece.grid.quant_max()) {
    piece.grid.of(piece.q.subspan(p.scale, p.columns), scale, zero_point, makes_codes ? inverse : nullptr);
  }
  void quantize(std::span<const float> x, const QuantizationSpec& spec, Path path, uint8_t* codes) const noexcept {
    kernels::quantize_codes8_each(x, inverse, zero_point, quant_min, quant_max, spec.round_method, path, codes);
  }
  void dequantize(const uint8_t* codes, size_t count, bool is_signed, float* y) const noexcept {
    for (size_t i = 0; i < count; ++i) {
      const int32_t code = is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
      y[i] = (static_cast<float>(code) - zero_point[i]) * scale[i];
    }
  }
};

struct QuantizeInt final : SpecOperation {
  using SpecOperation::SpecOperation;
  void runs(const ScaleRuns& r) noexcept override {
    const Grids grids(*this, r);
    if (!spec.grid.divides) return codes_at(r.at, {x + r.at, r.count}, grids.of, r.run);
    float ratio[kPatch];
    for (size_t i = 0; i < r.runs(); ++i) {
      const size_t end = std::min(r.count, (i + 1) * r.run);
      for (size_t begin = i * r.run; begin < end; begin += kPatch) {
        const size_t count = std::min(kPatch, end - begin);
        kernels::divide({x + r.at + begin, count}, &grids.of[i].scale, 0, ratio);
        codes_at(r.at + begin, {ratio, count}, grids.of + i, count);
      }
    }
  }
  void codes_at(size_t at, std::span<const float> from, const Affine* grids, size_t run) noexcept {
    const uint32_t bytes = info_of(spec.dtype).code_bytes();
    if (bytes == 1) return kernels::quantize_codes8(from, grids, run, spec.round_method, path, codes + at);
    if (bytes == 2)
      return kernels::quantize_codes16(from, grids, run, spec.round_method, path,
                                       reinterpret_cast<uint16_t*>(codes) + at);
    // int32: the ends of the range are not float32 values, so the conversion saturates.
    auto* to = reinterpret_cast<int32_t*>(codes) + at;
    const auto lowest = static_cast<double>(quant_min_of(spec)), highest = static_cast<double>(quant_max_of(spec));
    for (size_t i = 0; i < from.size(); ++i) {
      const Affine& a = grids[i / run];
      const float v = (from[i] != from[i] ? 0.0f : from[i]) * a.inverse;
      const float code = path == Path::fake ? apply_rounding(spec.round_method, v) + a.zero_point
                                            : apply_rounding(spec.round_method, v + a.zero_point);
      to[i] = static_cast<int32_t>(std::clamp<double>(code, lowest, highest));
    }
  }
  void patch(const Patch& p) noexcept override {
    if (info_of(spec.dtype).code_bytes() != 1) return SpecOperation::patch(p);
    const PatchGrids grids(*this, p, true);
    float ratio[kPatch];
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.at + row * p.pitch;
      if (spec.grid.divides) kernels::divide({x + at, p.columns}, grids.scale, 1, ratio);
      grids.quantize({spec.grid.divides ? ratio : x + at, p.columns}, spec, path, codes + at);
    }
  }
};

struct DequantizeInt final : SpecOperation {
  using SpecOperation::SpecOperation;
  template <class Code>
  void wide(const ScaleRuns& r) noexcept {
    const Grids grids(*this, r);
    const auto* from = reinterpret_cast<const Code*>(codes) + r.at;
    for (size_t i = 0; i < r.count; ++i)
      y[r.at + i] = (static_cast<float>(from[i]) - grids.of[i / r.run].zero_point) * grids.of[i / r.run].scale;
  }
  void runs(const ScaleRuns& r) noexcept override {
    const DtypeInfo& info = info_of(spec.dtype);
    if (info.code_bytes() == 4) return wide<int32_t>(r);
    if (info.code_bytes() == 2) return info.is_signed ? wide<int16_t>(r) : wide<uint16_t>(r);
    const Grids grids(*this, r);
    kernels::dequantize_codes8({codes + r.at, r.count}, info.is_signed, grids.of, r.run, y + r.at);
  }
  void patch(const Patch& p) noexcept override {
    if (info_of(spec.dtype).code_bytes() != 1) return SpecOperation::patch(p);
    const PatchGrids grids(*this, p, false);
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.at + row * p.pitch;
      grids.dequantize(codes + at, p.columns, info_of(spec.dtype).is_signed, y + at);
    }
  }
};

struct FakeQuantizeInt final : SpecOperation {
  using SpecOperation::SpecOperation;
  void runs(const ScaleRuns& r) noexcept override {
    const Grids grids(*this, r);
    kernels::fake_quantize_int({x + r.at, r.count}, grids.of, r.run, spec.round_method, y + r.at);
  }
  void patch(const Patch& p) noexcept override {
    if (info_of(spec.dtype).code_bytes() != 1 || has_fractional_zero_point(spec)) return SpecOperation::patch(p);
    // Via the codes: they are whole, so the value is the same.
    const PatchGrids grids(*this, p, true);
    uint8_t row_codes[kPatch];
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.at + row * p.pitch;
      grids.quantize({x + at, p.columns}, spec, Path::fake, row_codes);
      grids.dequantize(row_codes, p.columns, info_of(spec.dtype).is_signed, y + at);
    }
  }
};

// Quotients as torch gives them for tensors of 16 bits.
void round_to(Arithmetic arithmetic, std::span<float> x) noexcept {
  uint16_t bits[kPatch];
  for (size_t at = 0; at < x.size(); at += kPatch) {
    const std::span<float> some = x.subspan(at, std::min(kPatch, x.size() - at));
    if (arithmetic == Arithmetic::bfloat16) {
      kernels::narrow_bf16(some, bits);
      kernels::widen_bf16({bits, some.size()}, some.data());
    } else {
      kernels::narrow_f16(some, bits);
      kernels::widen_f16({bits, some.size()}, some.data());
    }
  }
}

// Floats whose quotients are rounded before they are cast: calls `cast(at, quotients, scale)` for pieces of one scale.
template <class Cast>
void cast_rounded(const SpecOperation& piece, const ScaleRuns& r, Arithmetic arithmetic, Cast cast) noexcept {
  float ratio[kPatch];
  for (size_t begin = 0; begin < r.count;) {
    const size_t in_run = r.run - begin % r.run;
    const size_t count = std::min({kPatch, in_run, r.count - begin});
    const float scale = piece.q[r.scale + begin / r.run].scale;
    kernels::divide({piece.x + r.at + begin, count}, &scale, 0, ratio);
    round_to(arithmetic, {ratio, count});
    cast(r.at + begin, std::span<const float>(ratio, count), scale);
    begin += count;
  }
}

// Columns of floats: divide by the scales first and multiply last; in between the scale is 1.
struct QuantizeFloat final : SpecOperation {
  QuantizeFloat(const QuantizationSpec& piece_spec, std::span<const QParams> scales) noexcept
      : SpecOperation(piece_spec, scales),
        format(float_format_of(piece_spec)),
        arithmetic(quotient_arithmetic(piece_spec)) {}
  template <class Code>
  void wide(const ScaleRuns& r, const float* scales) noexcept {
    auto* to = reinterpret_cast<Code*>(codes) + r.at;
    for (size_t i = 0; i < r.count; ++i) {
      const float v = x[r.at + i];
      const float ratio = v != v ? v : rounded_to(arithmetic, v / scales[i / r.run]);
      to[i] = static_cast<Code>(encode(format, ratio, Overflow::saturate));
    }
  }
  void runs(const ScaleRuns& r) noexcept override {
    if (arithmetic >= Arithmetic::bfloat16 && code_bytes_of(format.bits()) == 1) {
      const float one = 1.0f;
      return cast_rounded(*this, r, arithmetic, [&](size_t at, std::span<const float> ratio, float) {
        kernels::quantize_float(ratio, &one, ratio.size(), format, codes + at);
      });
    }
    const Scales scales(*this, r);
    const uint32_t bytes = code_bytes_of(format.bits());
    if (bytes == 4) return wide<uint32_t>(r, scales.of);
    if (bytes == 2) return wide<uint16_t>(r, scales.of);
    kernels::quantize_float({x + r.at, r.count}, scales.of, r.run, format, codes + r.at);
  }
  void patch(const Patch& p) noexcept override {
    if (code_bytes_of(format.bits()) != 1) return SpecOperation::patch(p);
    const float one = 1.0f;
    float ratio[kPatch];
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.at + row * p.pitch;
      for (size_t i = 0; i < p.columns; ++i) ratio[i] = x[at + i] / q[p.scale + i].scale;
      if (arithmetic >= Arithmetic::bfloat16) round_to(arithmetic, {ratio, p.columns});
      kernels::quantize_float({ratio, p.columns}, &one, kPatch, format, codes + at);
    }
  }
  FloatFormat format;
  Arithmetic arithmetic;
};

struct DequantizeFloat final : SpecOperation {
  DequantizeFloat(const QuantizationSpec& piece_spec, std::span<const QParams> scales) noexcept
      : SpecOperation(piece_spec, scales), format(float_format_of(piece_spec)) {}
  template <class Code>
  void wide(const ScaleRuns& r, const float* scales) noexcept {
    const auto* from = reinterpret_cast<const Code*>(codes) + r.at;
    for (size_t i = 0; i < r.count; ++i) y[r.at + i] = decode(format, from[i]) * scales[i / r.run];
  }
  void runs(const ScaleRuns& r) noexcept override {
    const Scales scales(*this, r);
    const uint32_t bytes = code_bytes_of(format.bits());
    if (bytes == 4) return wide<uint32_t>(r, scales.of);
    if (bytes == 2) return wide<uint16_t>(r, scales.of);
    kernels::dequantize_float({codes + r.at, r.count}, scales.of, r.run, format, y + r.at);
  }
  void patch(const Patch& p) noexcept override {
    if (code_bytes_of(format.bits()) != 1) return SpecOperation::patch(p);
    const float one = 1.0f;
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.at + row * p.pitch;
      kernels::dequantize_float({codes + at, p.columns}, &one, kPatch, format, y + at);
      for (size_t i = 0; i < p.columns; ++i) y[at + i] *= q[p.scale + i].scale;
    }
  }
  FloatFormat format;
};

struct FakeQuantizeFloat final : SpecOperation {
  FakeQuantizeFloat(const QuantizationSpec& piece_spec, std::span<const QParams> scales) noexcept
      : SpecOperation(piece_spec, scales),
        format(float_format_of(piece_spec)),
        arithmetic(quotient_arithmetic(piece_spec)) {}
  void runs(const ScaleRuns& r) noexcept override {
    if (arithmetic >= Arithmetic::bfloat16) {
      const float one = 1.0f;
      return cast_rounded(*this, r, arithmetic, [&](size_t at, std::span<const float> ratio, float scale) {
        kernels::fake_quantize_float(ratio, &one, ratio.size(), format, y + at);
        for (size_t i = 0; i < ratio.size(); ++i) y[at + i] *= scale;
      });
    }
    const Scales scales(*this, r);
    kernels::fake_quantize_float({x + r.at, r.count}, scales.of, r.run, format, y + r.at);
  }
  void patch(const Patch& p) noexcept override {
    const float one = 1.0f;
    float ratio[kPatch];
    for (size_t row = 0; row < p.rows; ++row) {
      const size_t at = p.at + row * p.pitch;
      for (size_t i = 0; i < p.columns; ++i) ratio[i] = x[at + i] / q[p.scale + i].scale;
      if (arithmetic >= Arithmetic::bfloat16) round_to(arithmetic, {ratio, p.columns});
      kernels::fake_quantize_float({ratio, p.columns}, &one, kPatch, format, ratio);
      for (size_t i = 0; i < p.columns; ++i) y[at + i] = ratio[i] * q[p.scale + i].scale;
    }
  }
  FloatFormat format;
  Arithmetic arithmetic;
};

void cast_to_bits(Dtype dtype, std::span<const float> x, uint16_t* bits) noexcept {
  dtype == Dtype::float16 ? kernels::narrow_f16(x, bits) : kernels::narrow_bf16(x, bits);
}

void cast_from_bits(Dtype dtype, std::span<const uint16_t> bits, float* y) noexcept {
  dtype == Dtype::float16 ? kernels::widen_f16(bits, y) : kernels::widen_bf16(bits, y);
}

template <class Operation>
void run_quantize(Operation operation, const Granularity& g, Path path, std::span<const float> x, uint64_t begin,
                  uint8_t* codes) noexcept {
  operation.x = x.data();
  operation.codes = codes;
  operation.path = path;
  visit_runs(g, begin, x.size(), operation);
}

template <class Operation>
void run_dequantize(Operation operation, const Granularity& g, const uint8_t* codes, size_t count, uint64_t begin,
                    float* y) noexcept {
  operation.codes = const_cast<uint8_t*>(codes);  // read only
  operation.y = y;
  visit_runs(g, begin, count, operation);
}

template <class Operation>
void run_fake(Operation operation, const Granularity& g, std::span<const float> x, uint64_t begin, float* y) noexcept {
  operation.x = x.data();
  operation.y = y;
  visit_runs(g, begin, x.size(), operation);
}

}  // namespace

void quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams, Path path,
              std::span<const float> x, uint64_t begin, uint8_t* codes) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  path = path_of(spec, path);
  if (dtype.is_plain_cast()) return cast_to_bits(spec.dtype, x, reinterpret_cast<uint16_t*>(codes));
  if (dtype.is_integer) return run_quantize(QuantizeInt(spec, qparams), g, path, x, begin, codes);
  run_quantize(QuantizeFloat(spec, qparams), g, path, x, begin, codes);
}

void dequantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                const uint8_t* codes, uint64_t count, uint64_t begin, float* y) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const auto length = static_cast<size_t>(count);
  if (dtype.is_plain_cast()) return cast_from_bits(spec.dtype, {reinterpret_cast<const uint16_t*>(codes), length}, y);
  if (dtype.is_integer) return run_dequantize(DequantizeInt(spec, qparams), g, codes, length, begin, y);
  run_dequantize(DequantizeFloat(spec, qparams), g, codes, length, begin, y);
}

namespace {

// For specs whose values the fake-quantization kernel does not give.
void fake_quantize_by_codes(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                            std::span<const float> x, uint64_t begin, float* y) noexcept {
  alignas(4) uint8_t codes[4 * kErrorBlock];
  for (size_t at = 0; at < x.size(); at += kErrorBlock) {
    const size_t count = std::min(kErrorBlock, x.size() - at);
    quantize(g, spec, qparams, Path::fake, x.subspan(at, count), begin + at, codes);
    dequantize(g, spec, qparams, codes, count, begin + at, y + at);
  }
}

}  // namespace

void fake_quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                   std::span<const float> x, uint64_t begin, float* y) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_plain_cast()) {  // via the codes
    alignas(2) uint16_t bits[kErrorBlock];
    for (size_t at = 0; at < x.size(); at += kErrorBlock) {
      const size_t count = std::min(kErrorBlock, x.size() - at);
      cast_to_bits(spec.dtype, x.subspan(at, count), bits);
      cast_from_bits(spec.dtype, {bits, count}, y + at);
    }
    return;
  }
  if (dtype.is_integer && (spec.grid.divides || spec.grid.zero_point_order == ZeroPointOrder::before_rounding))
    return fake_quantize_by_codes(g, spec, qparams, x, begin, y);
  if (dtype.is_integer) return run_fake(FakeQuantizeInt(spec, qparams), g, x, begin, y);
  run_fake(FakeQuantizeFloat(spec, qparams), g, x, begin, y);
}

void append_quantization_error(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                               std::span<const float> x, const uint8_t* codes, uint64_t begin,
                               kernels::ErrorSums& sums) noexcept {
  const size_t bytes = code_bytes_of(spec);
  float y[kErrorBlock];
  for (size_t at = 0; at < x.size();) {
    const auto to_block_end = static_cast<size_t>(kErrorBlock - (begin + at) % kErrorBlock);
    const size_t count = std::min(to_block_end, x.size() - at);
    dequantize(g, spec, qparams, codes + at * bytes, count, begin + at, y);
    sums.append(kernels::error_between(x.subspan(at, count), y));
    at += count;
  }
}

namespace {

// Whether the combined kernel applies: whole runs fill the blocks of the sums, or whole blocks fill the runs.
bool is_measured_at_once(const QuantizationSpec& spec, uint64_t run, uint64_t begin) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return dtype.is_integer && dtype.code_bytes() == 1 && spec.round_method == RoundMethod::half_even &&
         !spec.grid.divides && path_of(spec, Path::real) == Path::real && run % kernels::kMeasuredRun == 0 &&
         (kErrorBlock % run == 0 || run % kErrorBlock == 0) && begin % kErrorBlock == 0;
}

}  // namespace

kernels::ErrorSums quantize_measured(const Granularity& g, const QuantizationSpec& spec,
                                     std::span<const QParams> qparams, std::span<const float> x, uint64_t begin,
                                     uint8_t* codes) noexcept {
  kernels::ErrorSums sums;
  const auto length_of_runs = g.run_length();
  size_t done = 0;
  if (length_of_runs && is_measured_at_once(spec, *length_of_runs, begin)) {
    const uint64_t run = *length_of_runs;
    const AffineRule grid(spec);
    Affine grids[kErrorBlock / kernels::kMeasuredRun];
    for (; done < x.size(); done += kErrorBlock) {
      const auto block = x.subspan(done, std::min(kErrorBlock, x.size() - done));
      if (block.size() % kernels::kMeasuredRun != 0) break;
      const auto length = static_cast<size_t>(std::min<uint64_t>(run, kErrorBlock));
      const auto scale = static_cast<size_t>((begin + done) / run);
      for (size_t i = 0; i * length < block.size(); ++i) grids[i] = grid(qparams[scale + i]);
      const kernels::ErrorSums error = kernels::quantize_measured(block, grids, length, codes + done);
      if (kernels::is_in_range(error))
        sums.append(error);
      else
        append_quantization_error(g, spec, qparams, block, codes + done, begin + done, sums);
    }
    done = std::min(done, x.size());
  }
  const std::span<const float> rest = x.subspan(done);
  if (rest.empty()) return sums;
  const size_t at = done * code_bytes_of(spec);
  quantize(g, spec, qparams, Path::real, rest, begin + done, codes + at);
  append_quantization_error(g, spec, qparams, rest, codes + at, begin + done, sums);
  return sums;
}

}  // namespace wasmquant
