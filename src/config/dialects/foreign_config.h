// Configs and recipes of other tools that no dialect reads.
#pragma once
#include <string>

#include "core/diagnostic.h"
#include "core/json.h"

namespace wasmquant::config {

/// Whether `block` is such a config; if so, adds one error that says whose it is and what to give instead. Known are
/// the blocks of stored checkpoints whose `quant_method` is no dialect, NVIDIA ModelOpt's and MLX's blocks, and recipes
/// of llm-compressor, ModelOpt and Brevitas. `where`: pointer of the block in its text.
bool report_foreign(const json::Value& block, const std::string& where, DiagnosticList& out);

/// What each tool recognises of its own, by the rows of tools/tools.def.
#define WASMQUANT_FOREIGN(function) \
  bool function(const json::Value& block, const std::string& where, DiagnosticList& out);
#include "tools/tools.def"

/// Hints of such errors.
inline constexpr char kOpenTheCheckpoint[] =
    "open the checkpoint as a model; for the config, give a preset's name or a config of Quark";
inline constexpr char kGiveAConfig[] = "give a preset's name or a config of Quark";

}  // namespace wasmquant::config
