// Where a config.json says how its weights are stored: quantization_config, at the top or in the config of one part of a
// multimodal model.
#pragma once
#include <string>

#include "core/json.h"
#include "core/list.h"

namespace wasmquant {

/// One such object. `config` owns it.
struct ConfigBlock {
  List<std::string> path;  // {"text_config", "quantization_config"}
  const json::Value* value;

  /// As a JSON pointer.
  std::string where() const;
};

/// quantization_config, or compression_config as compressed-tensors once called it; then those of sub-configs
/// (text_config, llm_config, thinker_config and so on, and theirs), text_config first.
List<ConfigBlock> config_blocks(const json::Value& config);

/// Whether `block` is that of the one tool that writes no `quant_method`: it has a group_size, and bits or a mode, and no key by
/// which others are known.
bool is_unnamed_block(const json::Value& block) noexcept;

}  // namespace wasmquant
