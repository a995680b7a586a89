// Any text as a config, and, when it is one, some layer names resolved with it and the config written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_text.h"
#include "config/dialects/write.h"
#include "config/resolve/resolve.h"

using namespace wasmquant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  config::check(text);
  if (const auto spec = config::parse_spec_text(text)) {
    const auto again = config::parse_spec_text(json::write(config::to_json(*spec)));
    if (!again || !(*again == *spec)) std::abort();
  }
  const auto parsed = config::parse_text(text);
  if (!parsed) return 0;

  const Config& config = parsed->config;
  Resolver resolver(config);
  std::vector<config::ExportedLayer> layers;
  std::vector<Resolved> resolved;
  const std::vector<uint64_t> matrix = {16, 64}, image = {8, 3, 3, 3};
  List<std::string> names = {"lm_head.weight", "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                             "weight"};
  for (const auto& [name, layer] : config.layer) names.push_back(name + ".weight");
  for (const std::string& name : config.exclude) names.push_back(name + ".inner.weight");
  if (names.size() > 50) names.resize(50);
  resolved.reserve(names.size());
  for (const std::string& name : names) {
    resolver.resolve(name, image, true);
    resolved.push_back(resolver.resolve(name, matrix, true));
    const std::string_view layer =
        std::string_view(name).substr(0, name.size() - std::string_view(".weight").size() * (name.size() > 7));
    layers.push_back({layer, "Linear", resolved.back().weight.empty() ? nullptr : &resolved.back().weight});
  }
  resolver.unused_patterns();
  for (const char* dialect : {"quark", "brevitas", "aihwkit", "compressed-tensors", "gptq", "awq"}) {
    const auto converted = config::convert_text(text, dialect);
    if (converted && !config::parse_text(json::write(converted->config))) std::abort();
  }
  if (config.dialect != Dialect::quark) return 0;
  config::quantization_config(config, layers, {});
  const auto again = config::parse_text(json::write(config::to_json(config)));
  if (!again || !(again->config == config)) std::abort();
  return 0;
}
