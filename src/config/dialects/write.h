// Config to JSON, in Quark's keys and spelling (spec 1.6, 6.6).
#pragma once
#include <span>
#include <string_view>

#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// Every key of a Quark tensor spec. Casts (bfloat16, float16) have dtype and placeholder observer; the rest is null.
json::Value to_json(const QuantizationSpec& spec);

/// The same with every numeric choice explicit, including `grid` and `observer_options` that equal Quark's.
json::Value to_canonical_json(const QuantizationSpec& spec);

/// The whole config, including this library's keys; parts without effect (algo_config, kv_cache_quant_config, ...) come
/// from `config.source`. Reading it back gives an equal Config.
json::Value to_json(const Config& config);

/// A layer of a finished model: its class, the stages of its weight (null if unquantized) and those that runtimes apply to
/// its inputs (null: as the config says).
struct ExportedLayer {
  std::string_view name;
  std::string_view type;
  const Stages* weight;
  const Stages* inputs = nullptr;
};

/// The `quantization_config` of a written file. It describes the file, not the request: only what was applied, no
/// field-wise resolution (Quark's reader takes the chosen layer config whole), and exact entries or exclusions wherever
/// only the patterns would mislead a reader about `layers`.
/// `layers`: every layer of a quantizable class. `has_activation_scales`: static inputs and outputs were applied, too.
json::Value quantization_config(const Config& config, std::span<const ExportedLayer> layers, const ExportInfo& info,
                                bool has_activation_scales = false);

}  // namespace wasmquant::config
