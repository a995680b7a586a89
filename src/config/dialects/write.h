// Config to JSON, in Quark's keys and spelling (spec 1.6, 6.6).
#pragma once
#include <span>
#include <string_view>

#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// Every key of a Quark tensor spec. Casts (bfloat16, float16) have their dtype and the placeholder observer, all else
/// null.
json::Value to_json(const QuantizationSpec& spec);

/// The same with every numeric choice said, `grid` and `observer_options` too where they are Quark's own.
json::Value to_canonical_json(const QuantizationSpec& spec);

/// The whole config as it was meant, this library's keys included; what this version only carries along
/// (algo_config, kv_cache_quant_config, ...) comes from `config.source`. Reading it back gives an equal Config.
json::Value to_json(const Config& config);

/// One layer of a finished model: its class and what its weight became, null when it stays as it was.
struct ExportedLayer {
  std::string_view name;
  std::string_view type;
  const Stages* weight;
};

/// The `quantization_config` of a file that was written. It says what is in the file, not what was asked: nothing
/// that was not applied, no field-wise resolution (Quark's reader takes the chosen layer config whole), and exact
/// entries or exclusions wherever the patterns alone would tell a reader something else than `layers`.
/// `layers`: every layer of a quantizable class. `has_activation_scales`: static inputs and outputs were applied, too.
json::Value quantization_config(const Config& config, std::span<const ExportedLayer> layers, const ExportInfo& info,
                                bool has_activation_scales = false);

}  // namespace wasmquant::config
