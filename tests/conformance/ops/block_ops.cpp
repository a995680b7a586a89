// Blocks along one axis that share a scale (MX, float groups, NVFP4) or an exponent (mx6, mx9, bfp16).
#include <cmath>

#include "observers/registry.h"
#include "ops/ops.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"
#include "scale_outputs.h"

namespace conformance {

using namespace wasmquant;

namespace {

// per_group along params.axis, blocks of params.`size_name`.
Result<QuantizationSpec> block_spec(const GoldenCase& c, const char* dtype_name, const char* size_name) {
  QuantizationSpec spec;
  TRY(name, c.word(dtype_name));
  const std::optional<Dtype> dtype = dtype_named(name);
  if (!dtype) return not_yet("dtype " + name);
  TRY(size, c.number(size_name));
  TRY(axis, c.number("axis"));
  spec.dtype = *dtype;
  spec.qscheme = QScheme::per_group;
  spec.group_size = static_cast<int64_t>(size);
  spec.ch_axis = static_cast<int64_t>(axis);
  spec.observer = ObserverId::PerBlockMXObserver;
  return spec;
}

struct Quantized {
  Granularity granularity;
  std::vector<QParams> qparams;
  std::vector<float> x, y;
};

Result<Quantized> quantized(const GoldenCase& c, const QuantizationSpec& spec) {
  TRY(x, c.input("x"));
  TRY(observed, observe_tensor(spec, x.as_floats(), x.shape));
  Quantized q{observed.granularity, observed.qparams, x.as_floats(), {}};
  q.y.resize(q.x.size());
  fake_quantize(q.granularity, spec, q.qparams, q.x, 0, q.y.data());
  return q;
}

Produced numbers(const std::vector<float>& values) { return {{values.begin(), values.end()}, {}, {}}; }

}  // namespace

Result<Outputs> mx_quant(const GoldenCase& c) {
  constexpr std::pair<const char*, ScaleCalculationMode> kModes[] = {{"even", ScaleCalculationMode::even},
                                                                     {"floor", ScaleCalculationMode::floor},
                                                                     {"ceil", ScaleCalculationMode::ceil}};
  TRY_VOID(c.allow_params({"element_dtype", "block_size", "axis", "scale_calculation_mode"}));
  TRY(spec, block_spec(c, "element_dtype", "block_size"));
  TRY(mode_name, c.word("scale_calculation_mode"));
  spec.scale_format = ScaleFormat::e8m0;
  bool known = false;
  for (const auto& [name, mode] : kModes) {
    if (mode_name != name) continue;
    spec.scale_calculation_mode = mode;
    known = true;
  }
  if (!known) return not_yet("scale_calculation_mode " + mode_name);
  TRY(q, quantized(c, spec));
  Outputs outputs{{"y", numbers(q.y)}};
  add_scales(outputs, "", q.granularity, spec, q.qparams);
  return outputs;
}

Result<Outputs> group_float(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype", "scale_format", "group_size", "axis"}));
  TRY(spec, block_spec(c, "dtype", "group_size"));
  TRY(format, c.word("scale_format"));
  if (format != "float32" && format != "e5m3") return not_yet("scale_format " + format);
  if (format == "e5m3") spec.scale_format = ScaleFormat::e5m3;
  TRY(q, quantized(c, spec));
  Outputs outputs{{"y", numbers(q.y)}};
  add_scales(outputs, "", q.granularity, spec, q.qparams);
  for (const double scale : outputs["scale"].values)
    outputs["scale_codes"].values.push_back(
        encode(float_format_of(Dtype::fp8_e5m3), static_cast<float>(scale), Overflow::saturate));
  return outputs;
}

Result<Outputs> nvfp4(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"group_size", "scale_format", "axis", "dtype"}));
  TRY(format, c.word("scale_format"));
  if (format != "e4m3") return not_yet("scale_format " + format);
  QuantizationSpec spec;
  TRY(size, c.number("group_size"));
  TRY(axis, c.number("axis"));
  spec.dtype = Dtype::fp4;
  spec.qscheme = QScheme::per_group;
  spec.group_size = static_cast<int64_t>(size);
  spec.ch_axis = static_cast<int64_t>(axis);
  spec.scale_format = ScaleFormat::e4m3;
  spec.observer = ObserverId::PerBlockMXObserver;
  TRY(q, quantized(c, spec));
  float magnitude = 0;
  for (const float v : q.x) magnitude = std::max(magnitude, std::fabs(v));
  const float second = second_scale_of(magnitude, spec);
  std::vector<uint8_t> codes(q.x.size());
  quantize(q.granularity, spec, q.qparams, kernels::Path::real, q.x, 0, codes.data());
  Outputs outputs{{"y", numbers(q.y)}, {"global_scale", numbers({second})}};
  for (const uint8_t code : codes) {
    outputs["codes"].values.push_back(code);
    outputs["elements"].values.push_back(wasmquant::decode(float_format_of(Dtype::fp4), code));
  }
  add_scales(outputs, "", q.granularity, spec, q.qparams);
  for (const double scale : outputs["scale"].values)
    outputs["block_scale_codes"].values.push_back(
        encode(float_format_of(Dtype::fp8_e4m3), static_cast<float>(scale) / second, Overflow::saturate));
  return outputs;
}

namespace {

// The mx6 and mx9 rule as AMD Quark first shipped it, which made these cases: the code limit (2^(E+1) - step) / step is
// not rounded to storage, so shifted codes reach +-2^(code_bits-1), infinities saturate, and subnormal elements count.
// One block.
void quantize_shipped_block(std::span<const float> block, const BlockFloatFormat& format, int* exponent,
                            uint8_t* shifts, int16_t* codes, float* y) noexcept {
  const auto finite = [](float v) { return std::isfinite(v) ? v : 0.0f; };
  const auto field_of = [&](float v) { return static_cast<int>(std::bit_cast<uint32_t>(finite(v)) >> 23 & 0xFF); };
  float largest = 0;
  for (const float v : block) largest = std::max(largest, std::fabs(finite(v)));
  const int field = field_of(largest);
  *exponent = field - kBlockExponentBias;
  for (size_t i = 0; i < block.size(); ++i) {
    const size_t first = i & ~size_t{1};
    const float other = first + 1 < block.size() ? block[first + 1] : 0.0f;
    const int shift = std::max(field_of(block[first]), field_of(other)) < field ? 1 : 0;
    shifts[i / 2] = static_cast<uint8_t>(shift);
    const double step = power_of_two(*exponent - shift - format.fraction_bits());
    const double limit = (power_of_two(*exponent + 1) - step) / step;
    const double code = std::clamp(std::nearbyint(finite(block[i]) / step), -limit, limit);
    codes[i] = static_cast<int16_t>(code);
    y[i] = std::isfinite(block[i]) ? static_cast<float>(code * step) : block[i];
  }
}

// Block by block along the last axis.
Outputs shipped_blocks(const Granularity& g, const BlockFloatFormat& format, const std::vector<float>& x) {
  Outputs outputs;
  const auto columns = static_cast<size_t>(g.axis);
  for (size_t row = 0; row < x.size(); row += columns) {
    for (size_t at = 0; at < columns; at += format.block) {
      std::vector<float> block(format.block), y(format.block);
      const size_t count = std::min<size_t>(format.block, columns - at);
      for (size_t i = 0; i < count; ++i) block[i] = x[row + at + i];
      std::vector<int16_t> codes(format.block);
      std::vector<uint8_t> shifts(format.block / 2);
      int exponent;
      quantize_shipped_block(block, format, &exponent, shifts.data(), codes.data(), y.data());
      for (size_t i = 0; i < count; ++i) {
        outputs["y"].values.push_back(y[i]);
        outputs["codes"].values.push_back(codes[i]);
      }
      outputs["block_exponent"].values.push_back(exponent);
      for (const uint8_t shift : shifts) outputs["shift"].values.push_back(shift);
    }
  }
  return outputs;
}

struct Blocks {
  Granularity granularity;
  BlockFloatFormat format;
  std::vector<float> x;
  BlockFloatTensor stored;
  Outputs outputs;  // y and codes
};

Result<Blocks> blocks_of(const GoldenCase& c, const QuantizationSpec& spec) {
  TRY(x, c.input("x"));
  TRY(g, granularity_of(x.shape, spec));
  Blocks b{g, block_float_of(spec.dtype, static_cast<uint32_t>(g.block)), x.as_floats(), {}, {}};
  b.stored = quantize_blocks(g, spec, b.x);
  std::vector<float> y(b.x.size());
  fake_quantize_blocks(g, spec, b.x, y.data());
  b.outputs["y"] = numbers(y);
  for (const int8_t code : b.stored.codes) b.outputs["codes"].values.push_back(code);
  return b;
}

}  // namespace

Result<Outputs> bfp_prime(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype", "block_size", "sub_block", "axis", "variant"}));
  TRY(spec, block_spec(c, "dtype", "block_size"));
  TRY(sub_block, c.number("sub_block"));
  TRY(variant, c.word("variant"));
  if (sub_block != 2 || !info_of(spec.dtype).pair_shift) return not_yet("sub-blocks of another size");
  TRY(b, blocks_of(c, spec));
  if (b.granularity.inner != 1) return not_yet("an axis that is not the last");
  if (variant == "shipped") return shipped_blocks(b.granularity, b.format, b.x);
  if (variant != "fixed") return not_yet("variant " + variant);
  Outputs outputs = std::move(b.outputs);
  const auto columns = static_cast<size_t>(b.granularity.axis), pairs = (columns + 1) / 2;
  size_t block = 0;
  for (size_t row = 0; row * columns < b.x.size(); ++row) {
    for (size_t at = 0; at < columns; at += b.format.block, ++block) {
      const int exponent = b.stored.exponents[block] - kBlockExponentBias;
      outputs["block_exponent"].values.push_back(exponent);
      for (size_t p = at / 2; p < (at + b.format.block) / 2; ++p)  // pairs of padding lie below every exponent
        outputs["shift"].values.push_back(p < pairs ? b.stored.shifts[row * pairs + p]
                                                    : exponent > -kBlockExponentBias);
    }
  }
  return outputs;
}

Result<Outputs> bfp16(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"block_size", "axis"}));
  QuantizationSpec spec;
  TRY(size, c.number("block_size"));
  TRY(axis, c.number("axis"));
  spec.dtype = Dtype::bfp16;
  spec.qscheme = QScheme::per_group;
  spec.group_size = static_cast<int64_t>(size);
  spec.ch_axis = static_cast<int64_t>(axis);
  TRY(b, blocks_of(c, spec));
  Outputs outputs = std::move(b.outputs);
  for (const uint8_t exponent : b.stored.exponents)
    outputs["step"].values.push_back(power_of_two(exponent - kBlockExponentBias - b.format.fraction_bits()));
  return outputs;
}

}  // namespace conformance
