// A whole config (Quark's QConfig), by itself or inside a config.json, with this library's additional keys.
#include <algorithm>

#include "config/match/edit_distance.h"
#include "config/reading/algorithm_config.h"
#include "config/reading/key_row.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "core/message.h"
#include "tools/quark/quark_config.h"

namespace wasmquant::config {
namespace {

constexpr Key kExportKeys[] = {
    {"kv_cache_group", kArray},
    {"min_kv_scale", kNumber | kNoEffect, nullptr, "0.0"},
    {"pack_method", kString},
    {"weight_format", kString | kNoEffect, nullptr, "\"real_quantized\""},
    {"weight_merge_groups", kArray | kNoEffect, nullptr, "[]"},
};
constexpr Keys kExport{kExportKeys, "Export"};

constexpr Key kConfigKeys[] = {
#define WASMQUANT_CONFIG_KEY WASMQUANT_KEY_ROW
#include "tools/quark/keys.def"
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};

constexpr Keys kConfig{kConfigKeys, "QConfig"};

void read_strings(const ObjectReader& in, const char* key, List<std::string>& target) {
  const json::Value* value = in.find(key);
  if (value == nullptr) return;
  for (size_t i = 0; i < value->items().size(); ++i) {
    const json::Value& item = value->items()[i];
    const std::string where = text_of("{}/{}", in.at(key), i);
    if (!item.is_string()) {
      in.out().error("type-invalid", where, text_of("expected a string, found {}", json::describe(item.kind())));
      continue;
    }
    check_pattern(item.as_string(), where, in.out());
    target.push_back(item.as_string());
  }
}

// Keys of a layer's spec that "defer to a higher-level or global setting" where they are null (Quark's documents).
constexpr std::string_view kDeferringKeys = "symmetric|round_method|scale_type";

bool is_integer_spec(const json::Value& spec) {
  const std::string_view dtype = spec.is_object() ? python_name(spec["dtype"].as_string()) : std::string_view();
  for (const DtypeInfo& row : kDtypes)
    if (is_same_word(dtype, row.name)) return row.is_integer;
  return false;
}

// Stages defer to the stage of the same number; the values of floats follow from their dtype.
void defer_spec(json::Value& spec, const json::Value& global) {
  for (size_t i = 0; i < std::min(spec.items().size(), global.items().size()); ++i)
    defer_spec(spec.items()[i], global.items()[i]);
  if (!is_integer_spec(spec) || !global.is_object()) return;
  for (auto& [key, value] : spec.members())
    if (const json::Value* found = global.find(key);
        value.is_null() && found != nullptr && index_in(key, kDeferringKeys) >= 0)
      value = *found;
}

// The config with nulls of layers' specs replaced by what the global spec says.
json::Value with_deferred_values(const json::Value& value) {
  json::Value out = value;
  if (!out.is_object() || out["resolution"].as_string() == word_of(Resolution::replace, kResolutions)) return out;
  const json::Value& global = value["global_quant_config"];
  for (auto& [key, layers] : out.members()) {
    if (index_in(key, "layer_type_quant_config|layer_quant_config") < 0 || !layers.is_object()) continue;
    for (auto& [name, layer] : layers.members())
      if (layer.is_object())
        for (auto& [slot, spec] : layer.members()) defer_spec(spec, global[slot.c_str()]);
  }
  return out;
}

using LayerMap = List<std::pair<std::string, LayerConfig>>;

void read_layers(const ObjectReader& in, const char* key, LayerMap& target) {
  const json::Value* value = in.find(key);
  if (value == nullptr) return;
  for (const auto& [name, layer] : value->members()) {
    const std::string where = pointer_to(in.at(key), name);
    check_pattern(name, where, in.out());
    target.emplace_back(name, parse_layer(layer, where, in.out()));
  }
}

// "Linear", "nn.Linear", "<class 'torch.nn.modules.linear.Linear'>" and "Dense" are one class.
void read_layer_types(const ObjectReader& in, LayerMap& target) {
  const size_t first = target.size();
  read_layers(in, "layer_type_quant_config", target);
  for (size_t i = first; i < target.size(); ++i) {
    std::string& name = target[i].first;
    const std::string where = pointer_to(in.at("layer_type_quant_config"), name);
    const int known = layer_type_index(name, kLayerTypes);
    if (known < 0) {
      in.out().error("value-unknown", where, text_of("{q} is not one of: {}", name, joined(kLayerTypes)),
                     did_you_mean(python_name(name), kLayerTypes));
      continue;
    }
    std::string type(kLayerTypes[static_cast<size_t>(known)]);
    for (size_t k = first; k < i; ++k) {
      if (target[k].first != type) continue;
      in.out().error("key-conflict", where, text_of("class {} is given twice", type), "keep one of them");
      break;
    }
    name = std::move(type);
  }
}

void check_names(const json::Value& value, const std::string& where, DiagnosticList& out) {
  if (!value.is_array())
    out.error_in("type-invalid", where, nullptr, nullptr, "expected a list of names, found {}",
                 json::describe(value.kind()));
  for (size_t i = 0; i < value.items().size(); ++i)
    if (!value.items()[i].is_string())
      out.error_in("type-invalid", where, text_of("{}", i).c_str(), nullptr, "expected a name");
}

void read_shared_scales(const ObjectReader& in, Config& config) {
  const json::Value* groups = in.find("shared_scale_groups");
  if (groups == nullptr || groups->is_null()) return;
  List<List<std::string>> read;
  for (size_t i = 0; i < groups->items().size(); ++i) {
    const json::Value& group = groups->items()[i];
    check_names(group, text_of("{}/{}", in.at("shared_scale_groups"), i), in.out());
    List<std::string>& names = read.emplace_back();
    for (const json::Value& name : group.items())
      if (name.is_string() && !name.as_string().empty()) names.push_back(name.as_string());
  }
  config.shared_scale_groups = std::move(read);
}

void read_carried(const ObjectReader& in, Resolution resolution, LayerMap& cache) {
  const auto refuse = [&](const char* key, std::string_view what) {
    in.error("not-implemented", key, std::string(what), "remove the key");
  };
  if (const json::Value* value = in.find("kv_cache_quant_config"); value != nullptr) {
    for (const auto& [name, layer] : value->members()) {
      const std::string where = pointer_to(in.at("kv_cache_quant_config"), name);
      check_pattern(name, where, in.out());
      LayerConfig parsed = parse_layer(layer, where, in.out());
      parsed.where = where;
      if (resolution == Resolution::field && (!parsed.weight.empty() || !parsed.input_tensors.empty()))
        in.out().warning_in("not-applied", where, nullptr, "write weights and inputs in layer_quant_config",
                            "only output_tensors of this entry are applied (resolution is \"field\")");
      cache.emplace_back(name, std::move(parsed));
    }
  }

  if (const json::Value* softmax = in.find("softmax_quant_spec"); softmax != nullptr && !softmax->is_null())
    refuse("softmax_quant_spec",
           "attention probabilities are quantized by the runtime, and no output format can ask for that");

  if (const json::Value* scale = in.find("min_kv_scale"); scale != nullptr && !(scale->as_number() >= 0))
    in.error("value-invalid", "min_kv_scale", "expected a scale that is not negative");
  if (const json::Value* keep = in.find("keep_prequantized_layers"); keep != nullptr && !keep->as_bool())
    refuse("keep_prequantized_layers",
           "false would quantize layers a second time; layers that are already quantized always stay as they are");
}

// The first of the two places that has names.
void read_cache_group(const ObjectReader& in, Config& config) {
  const json::Value* names = in.find("kv_cache_group");
  if (names == nullptr || names->is_null() || !config.kv_cache_group.empty()) return;
  check_names(*names, in.at("kv_cache_group"), in.out());
  for (const json::Value& name : names->items())
    if (name.is_string()) config.kv_cache_group.push_back(name.as_string());
  if (config.kv_cache.empty() && !config.kv_cache_group.empty())
    in.out().add({Severity::note, "no-effect", in.at("kv_cache_group"),
                  "no kv_cache_quant_config gives these layers scales to share", ""});
}

void read_export(const ObjectReader& in, Config& config) {
  const json::Value* value = in.find("export");
  if (value == nullptr) return;
  const ObjectReader reader(*value, in.at("export"), kExportKeys, in.out());
  ExportInfo info;
  reader.read_word("pack_method", kPackMethods, info.pack_method);
  reader.read_word("weight_format", kWeightFormats, info.weight_format);
  read_cache_group(reader, config);
  config.export_info = info;
}

// Renames old keys everywhere: they occur in tensor specs only.
json::Value with_current_names(const json::Value& value) {
  if (value.is_array()) {
    json::Array items;
    for (const json::Value& item : value.items()) items.push_back(with_current_names(item));
    return items;
  }
  if (!value.is_object()) return value;
  const bool is_spec = value.find("dtype") != nullptr;
  json::Object members;
  for (const auto& [name, member] : value.members()) {
    std::string_view current = name;
    if (is_spec && name == "dynamic") current = "is_dynamic";
    if (is_spec && name == "axis") current = "ch_axis";
    // One spelling may be null while the other has a value.
    if (member.is_null() && (current == "is_dynamic" || current == "ch_axis")) continue;
    members.emplace_back(std::string(current), with_current_names(member));
  }
  return members;
}

bool has_weights(const Config& config) {
  if (!config.global.weight.empty()) return true;
  for (const LayerMap* map : {&config.layer_type, &config.layer})
    for (const auto& [name, layer] : *map)
      if (!layer.weight.empty()) return true;
  return false;
}

}  // namespace

Config parse_quark(const json::Value& given, const std::string& where, DiagnosticList& out) {
  const size_t errors_before = out.errors();
  const json::Value value = with_known_algorithm_names(with_deferred_values(given));
  const ObjectReader in(value, where, kConfigKeys, out);
  Config config;
  config.where = where;
  if (const json::Value* global = in.find("global_quant_config"))
    config.global = parse_layer(*global, in.at("global_quant_config"), out);
  read_layer_types(in, config.layer_type);
  read_layers(in, "layer_quant_config", config.layer);
  read_strings(in, "exclude", config.exclude);
  in.read_word("resolution", kResolutions, config.resolution);
  in.word("indivisible_groups", kIndivisibleGroups);
  in.word("non_finite", kNonFinite);
  in.word("quant_mode", kQuantModes);
  if (const json::Value* level = in.find("log_severity_level");
      level != nullptr && (level->as_integer() < 0 || level->as_integer() > 4))
    out.error_in("value-invalid", in.at("log_severity_level"), nullptr, nullptr, "expected 0 to 4");
  read_shared_scales(in, config);
  read_carried(in, config.resolution, config.kv_cache);
  read_cache_group(in, config);
  const bool keeps_rope = in.find("kv_cache_post_rope") == nullptr || !in.find("kv_cache_post_rope")->as_bool();
  const json::Value* cache = in.find("kv_cache_quant_config");
  check_algorithms(in, "pre_quant_opt_config", config.global, false);
  check_algorithms(in, "algo_config", config.global, keeps_rope && cache != nullptr && !cache->members().empty());
  const json::Value* sync = in.find("sync_moe_expert_input_amax");
  config.shares_expert_inputs = sync != nullptr && sync->as_bool();
  read_export(in, config);

  if (out.errors() != errors_before) return config;
  if (in.find("global_quant_config") == nullptr && config.layer_type.empty() && config.layer.empty())
    out.error_in("key-missing", where, nullptr, "add \"global_quant_config\": {\"weight\": {\"dtype\": \"int8\"}}",
                 "the config has neither global_quant_config nor layer configs");
  else if (!has_weights(config))
    out.warning_in("nothing-quantized", where, nullptr, nullptr,
                   "no config has a weight spec: every tensor stays as it is");
  config.source = with_current_names(value);
  return config;
}

constinit const DialectInfo quark_dialect{
    .keys = []() noexcept -> const Keys& { return kConfig; },
    .read = parse_quark,
    .write = write_quark,
    .has_named_algorithms = true,
    .has_spec_words = true,
    .maps_entries = true,
};

}  // namespace wasmquant::config
