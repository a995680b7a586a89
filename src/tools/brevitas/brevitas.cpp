// The config of Quark's Brevitas extension as JSON (spec 2.1), with its rules (2.2) and supported combinations (2.3).
//   {"dialect": "brevitas", "global_quant_config": {"weight": {"bit_width": 4, "qscheme": "per_channel"}},
//    "pre_quant_opt_config": [], "algo_config": [{"name": "GPTQ", "act_order": true}]}
// Additions: `brevitas_version`, and `exclude`, which the extension lacks.
#include "tools/brevitas/brevitas.h"

#include <algorithm>

#include "config/dialects/dialects.h"
#include "config/match/name_match.h"
#include "config/reading/key_row.h"
#include "core/message.h"
#include "tools/brevitas/brevitas_grid.h"

namespace wasmquant::config {
namespace {

constexpr Key kSpecRows[] = {
#define WASMQUANT_TENSOR_KEY WASMQUANT_KEY_ROW
#include "tools/brevitas/keys.def"
};
constexpr Keys kSpec{kSpecRows, "BrevitasTensorConfig"};
constexpr Key kLayerRows[] = {
#define WASMQUANT_LAYER_KEY WASMQUANT_KEY_ROW
#include "tools/brevitas/keys.def"
};
constexpr Keys kLayer{kLayerRows, "BrevitasLayerConfig"};
constexpr Key kConfigRows[] = {
#define WASMQUANT_CONFIG_KEY WASMQUANT_KEY_ROW
#include "tools/brevitas/keys.def"
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};
constexpr Keys kConfig{kConfigRows, "BrevitasConfig"};

class BrevitasParser {
 public:
  BrevitasParser(const json::Value& value, const std::string& where, DiagnosticList& out)
      : raw_(value), source_(apply_defaults(value, where, kConfigRows, out)), out_(out) {
    config_.dialect = Dialect::brevitas;
    config_.where = where;
    config_.resolution = Resolution::replace;
    version_ = static_cast<BrevitasVersion>(index_in(source_["brevitas_version"].as_string(), kBrevitasVersions));
  }

  Config parse() {
    const json::Value& layer = source_["global_quant_config"];
    if (layer.is_null() && raw_.is_object()) {
      out_.error_in("key-missing", config_.where, nullptr,
                    "add \"global_quant_config\": {\"weight\": {\"bit_width\": 8}}", "global_quant_config is missing");
    }
    const std::string at_layer = at("global_quant_config");
    has_inputs_ = !layer["input_tensors"].is_null();
    config_.global.where = at_layer;
    config_.global.weight = tensor(layer, "weight", BrevitasUse::weight);
    config_.global.input_tensors = tensor(layer, "input_tensors", BrevitasUse::input);
    config_.global.output_tensors = tensor(layer, "output_tensors", BrevitasUse::output);
    check_bias(layer["bias"], pointer_to(at_layer, "bias"));
    if (has_inputs_ || !layer["output_tensors"].is_null()) note_calibration(out_, at_layer);

    if (const json::Value& backend = source_["backend"]; backend.as_string() != "layerwise")
      out_.error_in("value-invalid", config_.where, "backend", "leave the key out",
                    "Brevitas has {}, Quark's extension offers only layerwise", backend.as_string());
    if (raw_["pre_quant_opt_config"].is_null())
      note_default_preprocess();
    else
      check_brevitas_algorithms(source_.member("pre_quant_opt_config"), at("pre_quant_opt_config"), true, has_inputs_,
                                out_);
    check_brevitas_algorithms(source_.member("algo_config"), at("algo_config"), false, has_inputs_, out_);
    const json::Array& excluded = source_["exclude"].items();
    for (size_t i = 0; i < excluded.size(); ++i) {
      config_.exclude.push_back(excluded[i].as_string());
      check_pattern(excluded[i].as_string(), text_of("{}/{}", at("exclude"), i), out_);
    }
    if (out_.errors() == 0 && layer["weight"].is_null())
      out_.warning_in("nothing-quantized", config_.where, nullptr, nullptr,
                      "there is no weight spec: every tensor stays as it is");
    config_.source = std::move(source_);
    return std::move(config_);
  }

 private:
  std::string at(const char* key) const { return pointer_to(config_.where, key); }
  Stages tensor(const json::Value& layer, const char* key, BrevitasUse use) {
    return read_brevitas_tensor(layer[key], pointer_to(config_.global.where, key), use, version_, out_);
  }

  void note_default_preprocess() {
    source_.member("pre_quant_opt_config") = json::Value();
    out_.warning_in("default-preprocess", config_.where, nullptr, "set it to [], or write [{\"name\": \"Preprocess\"}]",
                    "pre_quant_opt_config is absent, which means [Preprocess] in Brevitas: it folds batch norms and "
                    "equalizes layers before anything is quantized. Here that happens only if the key is written");
  }

  void check_bias(const json::Value& value, const std::string& where) {
    if (value.is_null()) return;
    if (!has_inputs_)
      out_.error_in(
          "key-missing", where, nullptr, "add input_tensors, or remove bias",
          "a bias has the scale of its input times the scale of its weight, but the config has no input spec");
    if (value["quant_type"].as_string() == "float_quant")
      out_.error_in("value-invalid", where, "quant_type", nullptr, "biases are quantized to integers only");
    const int64_t bits = value["bit_width"].as_integer();
    if (bits != 8 && bits != 16 && bits != 24 && bits != 32)
      out_.error_in("value-invalid", where, "bit_width", "8, 16, 24 or 32", "biases of {} bits are not supported",
                    bits);
    for (const Key& key : kSpecRows) {
      const std::string_view name = key.name;
      if (name == "bit_width" || name == "quant_type") continue;
      json::Value standard;
      if (key.standard != nullptr) standard = std::move(*json::parse(key.standard));
      if (!(value[key.name] == standard))
        out_.warning_in("key-ignored", pointer_to(where, key.name), nullptr, "leave the key out",
                        "{} of a bias: biases are per tensor, symmetric, with the scale of input times weight", name);
    }
    out_.error_in("not-implemented", where, nullptr, "remove the key: biases stay as they are",
                  "no output format stores biases whose scale is that of the input times that of the weight");
  }

  const json::Value& raw_;
  json::Value source_;
  DiagnosticList& out_;
  Config config_;
  BrevitasVersion version_ = BrevitasVersion::v0_12_1;
  bool has_inputs_ = false;
};

// Whether a spec in it has a dtype, which Quark's must have and the extension's do not.
bool has_dtype(const json::Value& value) {
  for (const json::Value& item : value.items())
    if (has_dtype(item)) return true;
  for (const auto& [key, member] : value.members())
    if (key == "dtype" || has_dtype(member)) return true;
  return false;
}

// Quark's and the extension's configs differ in the keys of their specs and the names of their algorithms.
bool is_of_brevitas(const json::Value& block) {
  for (const char* list : {"global_quant_config", "layer_quant_config", "layer_type_quant_config"})
    if (has_dtype(block[list])) return false;
  const std::span<const AlgorithmKeys> known = brevitas_algorithm_keys();
  for (const char* list : {"pre_quant_opt_config", "algo_config"})
    for (const json::Value& item : block[list].items())
      if (std::any_of(known.begin(), known.end(),
                      [&](const AlgorithmKeys& row) { return row.name == item["name"].as_string(); }))
        return true;
  for (const char* tensor : {"weight", "input_tensors", "output_tensors", "bias"})
    for (const char* key : {"bit_width", "quant_type", "param_type"})
      if (block["global_quant_config"][tensor].find(key) != nullptr) return true;
  return false;
}

}  // namespace

constinit const DialectInfo brevitas_dialect{
    .keys = []() noexcept -> const Keys& { return kConfig; },
    .read = [](const json::Value& value, const std::string& where,
               DiagnosticList& out) { return BrevitasParser(value, where, out).parse(); },
    .write = write_brevitas,
    .own_keys = "brevitas_version|backend",
    .recognises = is_of_brevitas,
    .algorithms = brevitas_algorithm_keys,
    .translate = translate_brevitas,
    .has_groups = false,
    .has_transposed_axes = true,
};

}  // namespace wasmquant::config
