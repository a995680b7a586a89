// A config as plain structs. Field names are Quark's (spec: AMD Quark QTensorConfig / QLayerConfig / QConfig). The fields
// of a spec, and what they mean: spec_fields.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "config/spec/observer_table.h"
#include "config/spec/spec_enums.h"
#include "core/json.h"
#include "core/list.h"
#include "numeric/block_float.h"
#include "numeric/minifloat.h"
#include "numeric/rounding.h"

namespace wasmquant {

/// Numeric differences between tools that use the same words ("8 bits, symmetric, min-max"); the defaults are AMD
/// Quark's. (Grids of tools are in src/tools.) Floors are float32 numbers.
struct RoundingGrid {
#define WASMQUANT_GRID_FIELD(type, name, standard, ...) type name = standard;
#include "config/spec/spec_fields.def"

  friend bool operator==(const RoundingGrid&, const RoundingGrid&) = default;
};

/// Options of an observer; the defaults are AMD Quark's.
struct ObserverOptions {
#define WASMQUANT_OPTION_FIELD(type, name, standard, ...) type name = standard;
#include "config/spec/spec_fields.def"

  friend bool operator==(const ObserverOptions&, const ObserverOptions&) = default;
};

/// How one tensor is quantized, with every choice made. bfloat16 and float16 use only `dtype` (plain casts).
struct QuantizationSpec {
#define WASMQUANT_SPEC_FIELD(type, name, standard) type name = standard;
#include "config/spec/spec_fields.def"

  friend bool operator==(const QuantizationSpec&, const QuantizationSpec&) = default;
};

/// The format of a spec with a floating dtype.
constexpr FloatFormat float_format_of(const QuantizationSpec& spec) {
  return spec.dtype == Dtype::minifloat ? plain_minifloat(spec.exponent_bits, spec.mantissa_bits)
                                        : float_format_of(spec.dtype);
}
/// Whether scales are refit where an algorithm rounds by calibration data.
constexpr bool refits_calibrated(const QuantizationSpec& spec) { return spec.scale_refit || spec.calibrated_refit; }
/// Whether minimum and maximum of a scale's elements settle it.
constexpr bool needs_only_range(const QuantizationSpec& spec) {
  return info_of(spec.observer).finds_range() && !spec.scale_refit;
}
/// Whether the codes of each scale count from the end of larger magnitude: zero may lie far beyond them, and has no
/// zero point of their dtype.
constexpr bool counts_from_ends(const QuantizationSpec& spec) {
  return spec.scale_sign != ScaleSign::positive && !spec.symmetric;
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
  bool default_exclusions = false;    // layers of default_exclusions.def stay as they are unless named
  /// The dtype of which a preset makes every float of the model, not only the weights of layers; null: of none.
  const DtypeInfo* whole_cast() const noexcept {
    if (!default_exclusions || global.weight.size() != 1) return nullptr;
    const DtypeInfo& dtype = info_of(global.weight.front().dtype);
    return dtype.is_plain_cast() ? &dtype : nullptr;
  }
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
