// JSON to Config, in Quark's dialect: names, defaults and cross-field rules of AMD Quark's QConfig, QLayerConfig and
// QTensorConfig (spec 1.1 to 1.3, 1.6). More lenient than Quark: required keys with one sensible value may be omitted.
// Contradictions are errors. Every problem is reported; none stops the parser.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/dialects/dialects.h"
#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"

namespace wasmquant::config {

/// A whole config, at `where` of its text. Use it only if `out` got no error.
Config parse_quark(const json::Value& value, const std::string& where, DiagnosticList& out);

/// What a tensor spec is for. This version quantizes only weights; an unsupported spec for the other uses is reported
/// as not applied and dropped, not rejected.
enum class TensorSlot : uint8_t { weight, bias, input, output };

/// One tensor spec with every default filled in. Nullopt after an error, or if it is unsupported (see TensorSlot).
std::optional<QuantizationSpec> parse_spec(const json::Value& value, const std::string& where, TensorSlot use,
                                           DiagnosticList& out);

json::Value write_quark(DialectConversion& conversion);
/// The keys of a layer config.
extern const Keys kLayerKeys;

/// {input_tensors, output_tensors, weight, bias, target_device}
LayerConfig parse_layer(const json::Value& value, const std::string& where, DiagnosticList& out);

}  // namespace wasmquant::config
