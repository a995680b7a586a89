// Lists of two specs for one tensor (AMD Quark, spec 2.4).
//   progressive   the first stage's codes, read as numbers, are quantized again by the second:
//                   v = code1(x) as a number,  q = code2(v);   back: value1(value2(q))
//                 e.g. fp8_e4m3 per tensor, then int4 per channel.
//   scale quant   the second stage (is_scale_quant) quantizes the scales of the first; codes are of the first stage,
//                 computed with the dequantized scales. E.g. fp4 per group of 16, its scales fp8_e4m3 per tensor.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Both stages of one tensor.
class TwoStages {
 public:
  /// Errors: spec-invalid for other lists (unfit_stages); those of granularity_of.
  static Result<TwoStages> create(const QuantizationSpec& first, const QuantizationSpec& second,
                                  const std::vector<uint64_t>& shape);

  bool is_scale_quant() const noexcept { return second_.is_scale_quant; }
  /// The granularity of the observed ranges: of the second stage (progressive) or the first (scale quant).
  const Granularity& granularity() const noexcept { return granularity_; }
  /// The spec of the tensor's codes: second (progressive), first (scale quant).
  const QuantizationSpec& code_spec() const noexcept { return is_scale_quant() ? first_ : second_; }

  struct Scales {
    std::vector<QParams> of_codes;      // one per scale of granularity(), used to compute and read codes
    QParams other;                      // progressive: of the first stage; scale quant: of the scales
    std::vector<uint32_t> scale_codes;  // scale quant: codes of the scales, internal order
  };
  /// From the tensor's ranges, one per scale. `joined`: the range of other tensors, with which the stage that has one
  /// scale for the whole tensor shares it: the first (progressive) or the second (scale quant).
  Scales scales_of(std::span<const float> min, std::span<const float> max, const ValueRange& joined = {}) const;
  /// Whether `joined` says all that the shared scale depends on: one scale for the tensor, and where it is that of
  /// scales, their largest follows from the largest magnitude.
  bool can_join() const noexcept;

  /// Progressive: the first stage's codes as numbers, which the second stage quantizes; and back. `y` may be `x`.
  void numbers_of(const QParams& other, std::span<const float> x, float* y) const noexcept;
  void values_of(const QParams& other, std::span<float> y) const noexcept;

  /// Codes of a span, code_bytes_of(code_spec()) each; as quantize().
  void quantize(const Scales& scales, std::span<const float> x, uint64_t begin, uint8_t* codes) const;
  /// Values of codes; as dequantize().
  void dequantize(const Scales& scales, const uint8_t* codes, uint64_t count, uint64_t begin, float* y) const;

 private:
  bool divides_once() const noexcept;
  Scales block_scales_of(std::span<const float> min, std::span<const float> max, const ValueRange& joined) const;
  TwoStages(const QuantizationSpec& first, const QuantizationSpec& second, Granularity granularity)
      : first_(first), second_(second), granularity_(std::move(granularity)) {}

  QuantizationSpec first_, second_;
  Granularity granularity_;
};

}  // namespace wasmquant
