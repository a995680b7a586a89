#include "families/config_blocks.h"

#include "core/message.h"

namespace wasmquant {
namespace {

constexpr int kLevels = 3;
constexpr std::string_view kText = "text_config";

void add_blocks(const json::Value& config, const List<std::string>& path, List<ConfigBlock>& out) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!config[key].is_object()) continue;
    ConfigBlock& block = out.emplace_back();
    block.path = path;
    block.path.emplace_back(key);
    block.value = &config[key];
  }
  if (path.size() + 1 == kLevels) return;
  for (const bool is_text : {true, false})
    for (const auto& [key, value] : config.members()) {
      const bool is_block = key == "quantization_config" || key == "compression_config";
      if (!value.is_object() || is_block || !key.ends_with("_config") || (key == kText) != is_text) continue;
      List<std::string> below = path;
      below.push_back(key);
      add_blocks(value, below, out);
    }
}

}  // namespace

std::string ConfigBlock::where() const {
  std::string pointer;
  for (const std::string& key : path) pointer += text_of("/{}", json::pointer_token(key));
  return pointer;
}

List<ConfigBlock> config_blocks(const json::Value& config) {
  List<ConfigBlock> out;
  add_blocks(config, {}, out);
  return out;
}

bool is_unnamed_block(const json::Value& block) noexcept {
  for (const char* of_others : {"quant_method", "dialect", "desc_act", "sym", "zero_point", "version"})
    if (!block[of_others].is_null()) return false;
  return block["group_size"].is_integer() && (block["bits"].is_integer() || block["mode"].is_string());
}

}  // namespace wasmquant
