// aihwkit's QuantizationMap as JSON: the fields of its classes by name, modules by class name (spec 1.1).
//   {"dialect": "aihwkit", "module_qconfig_map": {"Linear": {"quantized_module": "QuantLinear", "module_qconfig": {
//    "weight_quant": {"n_bits": 8, "per_channel": true}}}}, "excluded_modules": ["lm_head"]}
// `append_default_conversions: true` means calling the function of that name.
#include "tools/aihwkit/aihwkit.h"

#include <algorithm>

#include "config/dialects/dialects.h"
#include "config/match/name_match.h"
#include "config/reading/key_row.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"
#include "tools/aihwkit/aihwkit_tensor.h"

namespace wasmquant::config {
namespace {

constexpr Key kActivationKeys[] = {
#define WASMQUANT_ACTIVATION_KEY WASMQUANT_KEY_ROW
#include "tools/aihwkit/keys.def"
};
constexpr Key kWeightKeys[] = {
#define WASMQUANT_WEIGHT_KEY WASMQUANT_KEY_ROW
#include "tools/aihwkit/keys.def"
};
constexpr Keys kActivation{kActivationKeys, "ActivationQuantConfig"}, kWeight{kWeightKeys, "WeightQuantConfig"};
constexpr Key kQuantizationKeys[] = {
#define WASMQUANT_LAYER_KEY WASMQUANT_KEY_ROW
#include "tools/aihwkit/keys.def"
};
constexpr Keys kQuantization{kQuantizationKeys, "QuantizationConfig"};
constexpr Key kModuleKeys[] = {
#define WASMQUANT_MODULE_KEY WASMQUANT_KEY_ROW
#include "tools/aihwkit/keys.def"
};
constexpr Keys kModule{kModuleKeys, "QuantizedModuleConfig"};
constexpr Key kMapKeys[] = {
#define WASMQUANT_MAP_KEY WASMQUANT_KEY_ROW
#include "tools/aihwkit/keys.def"
#define WASMQUANT_EVERY_DIALECT_KEY WASMQUANT_KEY_ROW
#include "config/dialects/every_dialect_keys.def"
};

constexpr Keys kQuantizationMap{kMapKeys, "QuantizationMap"};

// Classes with a quantized module; the first kDefaultConversions are those of append_default_conversions.
constexpr std::string_view kClasses[] = {"Linear", "LayerNorm", "Embedding", "Conv2d", "BatchNorm2d"};
constexpr size_t kDefaultConversions = 4;

}  // namespace

bool is_aihwkit_class(std::string_view type) noexcept {
  return std::find(std::begin(kClasses), std::end(kClasses), type) != std::end(kClasses) ||
         std::find(kLayerTypes.begin(), kLayerTypes.end(), type) != kLayerTypes.end();
}

namespace {

class AihwkitParser {
 public:
  AihwkitParser(const json::Value& value, const std::string& where, DiagnosticList& out)
      : raw_(value), source_(apply_defaults(value, where, kMapKeys, out)), out_(out) {
    config_.dialect = Dialect::aihwkit;
    config_.where = where;
    config_.weight_key = "weight_quant";
    config_.resolution = Resolution::replace;
    config_.exact_names = true;
  }

  Config parse() {
    const LayerConfig standard = layer(source_.member("default_qconfig"), at("default_qconfig"));
    modules("module_qconfig_map", source_.member("module_qconfig_map"), config_.layer_type);
    modules("instance_qconfig_map", source_.member("instance_qconfig_map"), config_.layer);
    for (auto& [name, value] : source_.member("input_activation_qconfig_map").members()) {
      const std::string where = pointer_to(at("input_activation_qconfig_map"), name);
      if (name.empty())
        out_.error_in("value-invalid", where, nullptr, "name a module", "the model as a whole cannot be wrapped");
      config_.input_quantizers.emplace_back(name, tensor(value, where, false));
      activations_ |= !config_.input_quantizers.back().second.empty();
    }
    const json::Array& excluded = source_["excluded_modules"].items();
    for (size_t i = 0; i < excluded.size(); ++i) {
      config_.exclude.push_back(excluded[i].as_string());
      config_.exclude_where.push_back(text_of("{}/{}", at("excluded_modules"), i));
      if (is_glob(excluded[i].as_string()))
        out_.warning_in("names-matched-exactly", config_.exclude_where.back(), nullptr,
                        "name the module itself, or a module that contains it",
                        "aihwkit compares names exactly; patterns do not work here");
    }
    if (source_["append_default_conversions"].as_bool()) {
      append_default_conversions(standard);
    } else if (raw_.find("default_qconfig") != nullptr) {
      out_.warning_in("default-has-no-effect", config_.where, "default_qconfig",
                      "add \"append_default_conversions\": true, or fill module_qconfig_map",
                      "default_qconfig does nothing by itself: it is a template for append_default_conversions");
    }
    if (activations_) note_calibration(out_, config_.where);
    if (!weights_ && out_.errors() == 0)
      out_.warning_in("nothing-quantized", config_.where, nullptr, nullptr,
                      "no entry has n_bits for weights: every tensor stays as it is");
    config_.source = std::move(source_);
    return std::move(config_);
  }

 private:
  std::string at(const char* key) const { return pointer_to(config_.where, key); }

  void modules(const char* key, json::Value& map, List<std::pair<std::string, LayerConfig>>& target) {
    for (auto& [name, value] : map.members()) {
      const std::string where = pointer_to(at(key), name);
      const bool by_class = &target == &config_.layer_type;
      // "Linear", "nn.Linear" and "torch.nn.modules.linear.Linear" are the same class; layer names keep their dots.
      std::string plain = by_class ? std::string(python_name(name)) : name;
      if (plain.empty())
        out_.error_in("value-invalid", where, nullptr, nullptr, "a class or module must have a name");
      else if (by_class)
        check_class(plain, where);
      const std::string_view replaced = quantized_module(value, plain, by_class, where);
      is_convolution_ = (by_class ? std::string_view(plain) : replaced) == "Conv2d";
      LayerConfig layer = this->layer(value.member("module_qconfig"), pointer_to(where, "module_qconfig"));
      if (!by_class) layer.of_class = replaced;
      // Upstream's embedding never quantizes its output.
      if (replaced == "Embedding") layer.output_tensors.clear();
      if (by_class && plain == "BatchNorm2d" && (!layer.weight.empty() || !layer.output_tensors.empty()))
        out_.warning_in("not-applied", where, nullptr, "remove the entry",
                        "batch norms stay as they are: aihwkit quantizes their outputs only, and files hold scales of "
                        "outputs only for layers with quantized weights");
      target.emplace_back(std::move(plain), std::move(layer));
    }
  }

  // Layers of other classes are never found here, not even to leave them as they are.
  void check_class(std::string_view type, const std::string& where) {
    if (is_aihwkit_class(type)) return;
    List<std::string_view> known(kLayerTypes.begin(), kLayerTypes.end());
    for (const std::string_view own : {"LayerNorm", "BatchNorm2d"}) known.push_back(own);
    unknown_word(type, where, std::span(known.data(), known.size()), out_);
  }

  // The class that an entry's quantized module replaces; "" if it is not one of aihwkit's. A class entry without a
  // module gets Quant<class>.
  std::string_view quantized_module(json::Value& entry, std::string_view type, bool by_class,
                                    const std::string& where) {
    json::Value& module = entry.member("quantized_module");
    if (module.is_null() && by_class) module = json::Value(text_of("Quant{}", type));
    if (module.is_null()) return {};
    const std::string_view name = python_name(module.as_string());
    for (const std::string_view known : kClasses) {
      if (name != text_of("Quant{}", known)) continue;
      if (by_class && known != type)
        out_.error("value-invalid", pointer_to(where, "quantized_module"),
                   text_of("{} replaces {}, not {}", name, known, type), text_of("Quant{} does", type));
      return known;
    }
    if (!by_class || name != text_of("Quant{}", type))
      out_.warning_in("not-applied", where, "quantized_module",
                      "name QuantLinear, QuantLayerNorm, QuantEmbedding or "
                      "QuantConv2d",
                      "{q} is not a module of aihwkit: its layers are quantized as aihwkit's own modules do", name);
    return {};
  }

  LayerConfig layer(json::Value& value, const std::string& where) {
    LayerConfig layer;
    layer.output_tensors = tensor(value.member("activation_quant"), pointer_to(where, "activation_quant"), false);
    layer.weight = tensor(value.member("weight_quant"), pointer_to(where, "weight_quant"), true);
    layer.where = where;
    if (where != at("default_qconfig")) {
      weights_ |= !layer.weight.empty();
      activations_ |= !layer.output_tensors.empty();
    }
    return layer;
  }

  void append_default_conversions(const LayerConfig& standard) {
    for (size_t i = 0; i < kDefaultConversions; ++i) {
      bool present = false;
      for (const auto& [type, layer] : config_.layer_type) present |= type == kClasses[i];
      if (present) continue;
      config_.layer_type.emplace_back(kClasses[i], standard);
      config_.layer_type.back().second.is_implied = true;
      if (kClasses[i] == "Embedding") config_.layer_type.back().second.output_tensors.clear();
    }
    weights_ |= !standard.weight.empty();
    activations_ |= !standard.output_tensors.empty();
  }

  Stages tensor(json::Value& value, const std::string& where, bool is_weight) const {
    return read_aihwkit_tensor(value, where, is_weight, is_convolution_, out_);
  }

  const json::Value& raw_;
  json::Value source_;
  DiagnosticList& out_;
  Config config_;
  bool weights_ = false, activations_ = false;
  bool is_convolution_ = false;  // the entry that is being read is for Conv2d
};

}  // namespace

constinit const DialectInfo aihwkit_dialect{
    .keys = []() noexcept -> const Keys& { return kQuantizationMap; },
    .read = [](const json::Value& value, const std::string& where,
               DiagnosticList& out) { return AihwkitParser(value, where, out).parse(); },
    .write = write_aihwkit,
    .own_keys =
        "module_qconfig_map|instance_qconfig_map|default_qconfig|input_activation_qconfig_map|excluded_modules|"
        "append_default_conversions",
    .parameters = []() noexcept -> std::span<const Keys> { return aihwkit_parameters(); },
    .has_groups = false,
    .quantizes_norms = true,
};

}  // namespace wasmquant::config
