// JSON to Config, in Quark's dialect: names, defaults and cross-field rules of AMD Quark's QConfig, QLayerConfig and
// QTensorConfig (spec 1.1 to 1.3, 1.6), with friendlier defaults: what Quark demands but has one sensible value may be
// left out, what contradicts itself is an error. Every problem is reported, none stops the reading.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostic.h"
#include "config/object_reader.h"
#include "config/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// A config, a `quantization_config` block, a whole config.json that has one, or a preset's name as a JSON string.
/// `dialect` is "auto" or a dialect's name. The result is to be used only if `out` got no error; without a value the
/// text was no config at all.
std::optional<Config> parse(const json::Value& value, std::string_view dialect, DiagnosticList& out);

/// What a tensor spec is for. Only weights are quantized by this version; of the others, what it cannot hold is
/// reported as not applied and left out, not refused.
enum class TensorUse : uint8_t { weight, bias, input, output };

/// One tensor spec with every default filled in. No value after an error, or when it cannot be held (see TensorUse).
std::optional<QuantizationSpec> parse_spec(const json::Value& value, const std::string& where, TensorUse use,
                                           DiagnosticList& out);

/// The keys of a config and, through them, of all that is in it.
const Keys& quark_keys() noexcept;
extern const Keys kLayerKeys;

/// {input_tensors, output_tensors, weight, bias, target_device}
LayerConfig parse_layer(const json::Value& value, const std::string& where, DiagnosticList& out);

}  // namespace wasmquant::config
