// What a config says, as plain structs. Field names are Quark's (spec: AMD Quark QTensorConfig / QLayerConfig /
// QConfig).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/list.h"
#include "numeric/dtype.h"
#include "numeric/rounding.h"

namespace wasmquant {

enum class ObserverId : uint8_t {
#define WASMQUANT_OBSERVER(id, qscheme) id,
#include "observers/observers.def"
#undef WASMQUANT_OBSERVER
};

enum class QScheme : uint8_t { per_tensor, per_channel, per_group, per_block };
enum class ScaleType : uint8_t { float_, pof2, float32, float16, bfloat16, float8_e5m3, float8_e8m0fnu };
enum class ZeroPointType : uint8_t { int32, float32 };
enum class IndivisibleGroups : uint8_t { error, fallback };
enum class NonFinite : uint8_t { error, saturate };
enum class Resolution : uint8_t { field, replace };
enum class PackMethod : uint8_t { order, reorder };
enum class WeightFormat : uint8_t { real_quantized, fake_quantized };

/// How one tensor is quantized, every choice made. bfloat16 and float16 use `dtype` alone (plain casts).
struct QuantizationSpec {
  Dtype dtype = Dtype::int8;
  QScheme qscheme = QScheme::per_tensor;
  int64_t ch_axis = 0;     // may be negative (from the end); per_channel and per_group
  int64_t group_size = 0;  // per_group: > 0, or -1 = the whole axis
  bool symmetric = true;
  bool is_dynamic = false;
  RoundMethod round_method = RoundMethod::half_even;
  ScaleType scale_type = ScaleType::float_;
  ZeroPointType zero_point_type = ZeroPointType::int32;
  ObserverId observer = ObserverId::PerTensorMinMaxObserver;

  friend bool operator==(const QuantizationSpec&, const QuantizationSpec&) = default;
};

/// What is done to one tensor, first to last. Empty: not given.
using Stages = List<QuantizationSpec>;

/// One layer's config. A field that is not given falls through to the next candidate when `resolution` is `field`.
struct LayerConfig {
  Stages weight, bias, input_tensors, output_tensors;

  // Defined in spec.cpp: copied and destroyed in many places, and this code is downloaded.
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

/// A whole config. Maps keep the order of the file.
struct Config {
  LayerConfig global;
  List<std::pair<std::string, LayerConfig>> layer_type;  // class name
  List<std::pair<std::string, LayerConfig>> layer;       // exact name or glob
  List<std::string> exclude;                             // exact names or globs
  Resolution resolution = Resolution::field;
  IndivisibleGroups indivisible_groups = IndivisibleGroups::error;
  NonFinite non_finite = NonFinite::error;
  std::optional<ExportInfo> export_info;  // present in configs of finished Quark files
  std::string where;                      // JSON pointer of this config in its text: "" or "/quantization_config"
  std::string preset;                     // name of the preset it came from, or ""
  json::Value source;  // the config as it was given (normalised to the current key names), for writing it back

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
