// A config as plain structs. Field names are Quark's (spec: AMD Quark QTensorConfig / QLayerConfig / QConfig).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "config/spec/observer_options.h"
#include "config/spec/observer_table.h"
#include "config/spec/qscheme.h"
#include "core/json.h"
#include "core/list.h"
#include "numeric/block_float.h"
#include "numeric/minifloat.h"
#include "numeric/rounding.h"

namespace wasmquant {

/// The dtype that scales are stored in.
enum class ScaleType : uint8_t { float_, pof2, float32, float16, bfloat16, float8_e5m3, float8_e8m0fnu };
/// How block scales are stored. e8m0: powers of two · e4m3: fp8 under a float32 scale of the whole tensor (NVFP4) ·
/// e5m3: unsigned fp8 · float32: unchanged.
enum class ScaleFormat : uint8_t { float32, e8m0, e4m3, e5m3 };
/// Which power of two an e8m0 scale is: rounded with the element format's precision, below, or above.
enum class ScaleCalculationMode : uint8_t { even, floor, ceil };
/// float32 zero points may be fractional.
enum class ZeroPointType : uint8_t { int32, float32 };
/// The sign of the scales of symmetric integers. positive: AMD Quark's · signed_by_extreme: that which makes the value of
/// largest magnitude the lowest code, scale = value / quant_min, as ggml's Q4_0 has it.
enum class ScaleSign : uint8_t { positive, signed_by_extreme };
/// What happens to weights whose axis the group size does not divide: an error, or a smaller group.
enum class IndivisibleGroups : uint8_t { error, fallback };
/// What happens to NaN and infinity in weights.
enum class NonFinite : uint8_t { error, saturate };
/// How several matching layer configs combine.
enum class Resolution : uint8_t { field, replace };
/// Quark's order of nibbles in words.
enum class PackMethod : uint8_t { order, reorder };
/// Whether files get quantized or dequantized weights.
enum class WeightFormat : uint8_t { real_quantized, fake_quantized };

/// The divisor of a threshold. Symmetric: the largest magnitude is divided by (quant_max - quant_min) / 2, by
/// quant_max, by -quant_min, or by 2^(bits - 1). Asymmetric: the range by quant_max - quant_min, with code_count by
/// 2^bits.
enum class ScaleDivisor : uint8_t { half_range, largest_code, smallest_code, code_count };
/// Rounds the threshold to a power of two, by its float32 logarithm as in torch: ceil after smallest_threshold, floor
/// and ceil_unfloored before it.
enum class ThresholdRounding : uint8_t { none, floor, ceil, ceil_unfloored };
/// The dtype in which ranges, scales and quotients are computed, each result rounded to it as torch does with tensors of
/// that dtype. weight: the weight's, if that has 16 bits, else float32. by_format: weight in the quark format, which
/// holds what Quark writes, float32 in all others.
enum class Arithmetic : uint8_t { by_format, float32, weight, bfloat16, float16 };
/// When the zero point is added. by_path: after rounding in simulated values, before it in files.
enum class ZeroPointOrder : uint8_t { by_path, before_rounding, after_rounding };

/// Numeric differences between tools that use the same words ("8 bits, symmetric, min-max"); the defaults are AMD
/// Quark's. (Grids of tools are in src/tools.) Floors are float32 numbers.
struct RoundingGrid {
  ScaleDivisor divisor = ScaleDivisor::half_range;
  ThresholdRounding threshold_rounding = ThresholdRounding::none;
  ZeroPointOrder zero_point_order = ZeroPointOrder::by_path;
  Arithmetic arithmetic = Arithmetic::by_format;
  bool narrow = false;            // integers use one code less: -2^(bits - 1), or 2^bits - 1 of unsigned dtypes
  bool sign_by_data = false;      // signed integers become unsigned if no range of the tensor goes below zero
  bool divides = false;           // codes are of x / scale, not of x * (1 / scale)
  bool max_includes_zero = true;  // asymmetric: negative ranges extend up to zero (positive ones always extend down)
  bool zero_point_of_unfloored = false;  // asymmetric: from the scale before smallest_scale
  bool pads_groups = false;              // integer groups may end short
  float smallest_scale = 0x1p-23f;
  float smallest_threshold = 0;
  float smallest_max = 0;  // upper end of a range that includes zero

  friend bool operator==(const RoundingGrid&, const RoundingGrid&) = default;
};

/// How one tensor is quantized, with every choice made. bfloat16 and float16 use only `dtype` (plain casts).
struct QuantizationSpec {
  Dtype dtype = Dtype::int8;
  QScheme qscheme = QScheme::per_tensor;
  int64_t ch_axis = 0;                         // may be negative (from the end); per_channel and per_group
  int64_t group_size = 0;                      // per_group: > 0, or -1 = the whole axis
  uint32_t block_rows = 0, block_columns = 0;  // per_block: both > 0
  bool symmetric = true;
  bool is_dynamic = false;
  RoundMethod round_method = RoundMethod::half_even;
  ScaleType scale_type = ScaleType::float_;
  ScaleFormat scale_format = ScaleFormat::float32;
  ScaleCalculationMode scale_calculation_mode = ScaleCalculationMode::even;
  ZeroPointType zero_point_type = ZeroPointType::int32;
  ScaleSign scale_sign = ScaleSign::positive;
  bool scale_refit = false;  // scales are refit to the codes they give, by least squares (per_scale_search.h)
  ObserverId observer = ObserverId::PerTensorMinMaxObserver;

  uint8_t exponent_bits = 0, mantissa_bits = 0;  // only dtype minifloat: 1..7 and 0..10
  bool is_scale_quant = false;  // second stage of two: quantizes the scales of the first, not its codes
  RoundingGrid grid;
  ObserverOptions observer_options;

  friend bool operator==(const QuantizationSpec&, const QuantizationSpec&) = default;
};

/// The format of a spec with a floating dtype.
constexpr FloatFormat float_format_of(const QuantizationSpec& spec) {
  return spec.dtype == Dtype::minifloat ? plain_minifloat(spec.exponent_bits, spec.mantissa_bits)
                                        : float_format_of(spec.dtype);
}
/// Whether minimum and maximum of a scale's elements settle it.
constexpr bool needs_only_range(const QuantizationSpec& spec) {
  return info_of(spec.observer).finds_range() && !spec.scale_refit;
}
/// Smallest code of an integer spec.
constexpr int64_t quant_min_of(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return dtype.quant_min + (spec.grid.narrow && dtype.is_signed ? 1 : 0);
}
/// Largest code of an integer spec.
constexpr int64_t quant_max_of(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return dtype.quant_max - (spec.grid.narrow && !dtype.is_signed ? 1 : 0);
}
/// Bits of one code; block dtypes: without the shared bits.
constexpr uint32_t code_bits_of(const QuantizationSpec& spec) {
  return spec.dtype == Dtype::minifloat ? float_format_of(spec).bits() : info_of(spec.dtype).bits;
}
/// Bytes of one unpacked code: 1, 2 or 4.
constexpr uint32_t code_bytes_of(const QuantizationSpec& spec) { return code_bytes_of(code_bits_of(spec)); }

/// The stages of one tensor, first to last. Empty: not given.
using Stages = List<QuantizationSpec>;

/// Why these two cannot quantize a weight of any shape (quantize/stages.h); null if they can.
const char* unfit_stages(const QuantizationSpec& first, const QuantizationSpec& second) noexcept;

/// One layer's config. A field that is not given falls through to the next candidate if `resolution` is `field`.
struct LayerConfig {
  Stages weight, bias, input_tensors, output_tensors;
  std::string where;        // JSON pointer of the source; empty: derived from its key in Quark's dialect
  std::string of_class;     // aihwkit's instances: the class that the quantized module replaces; empty: any
  bool is_implied = false;  // an entry for a class that the dialect adds, not the user

  // Defined in spec.cpp to keep the module small: copied and destroyed in many places.
  LayerConfig() noexcept;
  LayerConfig(const LayerConfig& other);
  LayerConfig(LayerConfig&& other) noexcept;
  LayerConfig& operator=(const LayerConfig& other);
  LayerConfig& operator=(LayerConfig&& other) noexcept;
  ~LayerConfig();

  friend bool operator==(const LayerConfig& a, const LayerConfig& b);
};

/// What the `export` block of a finished Quark file says about its weights.
struct ExportInfo {
  PackMethod pack_method = PackMethod::reorder;
  WeightFormat weight_format = WeightFormat::real_quantized;

  friend bool operator==(const ExportInfo&, const ExportInfo&) = default;
};

/// The origin of a config. fp8 is read only; gguf is separate: its numbers are not specs.
enum class Dialect : uint8_t {
#define WASMQUANT_DIALECT(id, name) id,
#include "tools/tools.def"
};

/// A whole config. Maps keep the order of the file.
struct Config {
  Dialect dialect{};
  const char* weight_key = "weight";  // of one layer config, as the dialect spells it; a path
  LayerConfig global;
  List<std::pair<std::string, LayerConfig>> layer_type;  // class name
  List<std::pair<std::string, LayerConfig>> layer;       // exact name or glob
  List<std::string> exclude;                             // exact names or globs
  List<std::pair<std::string, LayerConfig>> kv_cache;    // Quark's kv_cache_quant_config: exact name or glob
  Stages cache;  // of the keys and values of every attention: kv_cache_scheme of compressed-tensors; empty: as they are
  List<std::pair<std::string, std::string>> layer_types;  // exact names or globs, and the class of such layers
  List<std::string> exclude_where;  // JSON pointers of the entries; empty: /exclude/0, /exclude/1, ...
  // aihwkit: entries of `layer` and `exclude` are names, never patterns, and cover everything below them.
  bool exact_names = false;
  // aihwkit: exact names of modules. The input of a layer with a quantized weight gets these stages.
  List<std::pair<std::string, Stages>> input_quantizers;
  Resolution resolution = Resolution::field;
  IndivisibleGroups indivisible_groups = IndivisibleGroups::error;
  NonFinite non_finite = NonFinite::error;
  // Endings of names of layers of one module that share the scale of the whole tensor. Empty: none do; not given: the
  // parts of joined layers share second scales.
  std::optional<List<List<std::string>>> shared_scale_groups;
  // Patterns of layers whose output scales are the largest of those of one module (keys and values of an attention).
  List<std::string> kv_cache_group;
  bool shares_expert_inputs = false;  // static scales of the inputs of a projection are the largest of all its experts'
  bool default_exclusions = false;    // layers of families/default_exclusions.def stay as they are unless named
  std::optional<ExportInfo> export_info;  // present in configs of finished Quark files
  std::string where;                      // JSON pointer of this config in its text: "" or "/quantization_config"
  std::string preset;                     // name of the preset it came from, or ""
  json::Value source;  // the config as it was given, in its dialect (current key names), for writing it back

  /// Whether an exclude entry that names a module covers everything below it. Quark's code covers what matches, no more.
  bool excludes_below() const noexcept { return dialect != Dialect() || resolution != Resolution::replace; }

  Config();
  Config(const Config& other);
  Config(Config&& other) noexcept;
  Config& operator=(const Config& other);
  Config& operator=(Config&& other) noexcept;
  ~Config();

  /// Same instructions for every tensor; `where`, `preset` and `source` are not compared.
  friend bool operator==(const Config& a, const Config& b);
};

}  // namespace wasmquant
