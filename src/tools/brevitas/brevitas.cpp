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
#define WASMQUANT_COMMON_KEY WASMQUANT_KEY_ROW
#include "config/dialects/common_keys.def"
};
constexpr Keys kConfig{kConfigRows, "BrevitasConfig"};

constexpr Key kPreprocessRows[] = {
    {"name", kString},
    {"trace_model", kBool | kNoEffect, nullptr, "true"},
    {"equalize_iterations", kInteger, nullptr, "20"},
    {"equalize_merge_bias", kBool, nullptr, "true"},
    {"merge_batch_norm", kBool, nullptr, "true"},
    {"channel_splitting_ratio", kNumber, nullptr, "0.0"},
    {"channel_splitting_split_input", kBool | kNoEffect, nullptr, "false"},
};
constexpr Key kEqualizationRows[] = {
    {"name", kString}, {"is_layerwise", kBool, nullptr, "true"}, {"alpha", kNumber, nullptr, "0.5"}};
constexpr Key kGptqOptionRows[] = {{"name", kString}, {"act_order", kBool, nullptr, "false"}};
constexpr Key kGpfqRows[] = {
    {"name", kString},
    {"act_order", kBool, nullptr, "false"},
    {"percentage_of_processed_inputs", kNumber | kNoEffect, nullptr, "1.0"},
};
constexpr Key kGpfa2qRows[] = {
    {"name", kString},
    {"act_order", kBool, nullptr, "false"},
    {"percentage_of_processed_inputs", kNumber | kNoEffect, nullptr, "1.0"},
    {"accumulator_bit_width", kInteger, nullptr, "16"},
};
constexpr Key kPlainRows[] = {{"name", kString}};

constexpr AlgorithmKeys kAlgorithmTable[] = {
    {"Preprocess", true, kPreprocessRows}, {"ActivationEqualization", true, kEqualizationRows},
    {"GPTQ", false, kGptqOptionRows},      {"GPFQ", false, kGpfqRows},
    {"GPFA2Q", false, kGpfa2qRows},        {"CalibrateBatchNorm", false, kPlainRows},
    {"BiasCorrection", false, kPlainRows},
};

// Widest exponent whose largest value is finite in float32, and widest supported mantissa.
constexpr int64_t kMaxExponentBits = 7, kMaxMantissaBits = 10;

class BrevitasParser {
 public:
  BrevitasParser(const json::Value& value, const std::string& where, DiagnosticList& out)
      : raw_(value), source_(complete(value, where, kConfigRows, out)), out_(out) {
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
    config_.global.weight = tensor(layer["weight"], pointer_to(at_layer, "weight"), Use::weight);
    config_.global.input_tensors = tensor(layer["input_tensors"], pointer_to(at_layer, "input_tensors"), Use::input);
    config_.global.output_tensors =
        tensor(layer["output_tensors"], pointer_to(at_layer, "output_tensors"), Use::output);
    check_bias(layer["bias"], pointer_to(at_layer, "bias"));
    if (has_inputs_ || !layer["output_tensors"].is_null()) note_calibration(out_, at_layer);

    if (const json::Value& backend = source_["backend"]; backend.as_string() != "layerwise")
      out_.error_in("value-invalid", config_.where, "backend", "leave the key out",
                    "Brevitas has {}, Quark's extension offers only layerwise", backend.as_string());
    algorithms(source_.member("pre_quant_opt_config"), at("pre_quant_opt_config"), true);
    algorithms(source_.member("algo_config"), at("algo_config"), false);
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
  enum class Use : uint8_t { weight, input, output };

  bool is_old() const noexcept { return version_ == BrevitasVersion::v0_10_3; }
  std::string at(const char* key) const { return pointer_to(config_.where, key); }
  void unsupported(const std::string& where, const char* key, const std::string& message, const char* hint) {
    out_.error("combination-unsupported", pointer_to(where, key), message, hint);
  }

  // The rules of spec 2.2 and 2.3, in order.
  Stages tensor(const json::Value& value, const std::string& where, Use use) {
    if (value.is_null()) return {};
    const size_t errors_before = out_.errors();
    QuantizationSpec spec;
    spec.symmetric = value["symmetric"].as_bool();
    const bool is_float = value["quant_type"].as_string() == "float_quant";
    const std::string& scale = value["scale_type"].as_string();
    const std::string& qscheme = value["qscheme"].as_string();
    BrevitasChoice choice{use == Use::weight, scale == "pof2", value["param_type"].as_string() == "mse", version_};

    if (choice.pof2 ? is_float : scale != "float")
      unsupported(where, "scale_type",
                  text_of("{} scales are not supported by {}", scale, value["quant_type"].as_string()),
                  is_float ? "float_quant has float scales" : "int_quant has float or pof2 scales");
    if (!spec.symmetric && is_float)
      unsupported(where, "symmetric", "float_quant is always symmetric", "leave the key out");
    if (!spec.symmetric && choice.pof2 && (choice.is_weight || choice.mse))
      unsupported(where, "symmetric",
                  text_of("there is no asymmetric {} with pof2 scales{}", choice.is_weight ? "weights" : "activations",
                          choice.is_weight ? "" : " and param_type mse"),
                  "set symmetric to true, or scale_type to float");
    bool per_channel = qscheme == "per_channel";
    if (qscheme == "per_group" || qscheme == "per_block" || (per_channel && use == Use::output)) {
      unsupported(where, "qscheme", text_of("Brevitas has no {} here", qscheme),
                  use == Use::weight ? "use per_tensor or per_channel" : "use per_tensor");
    } else if (per_channel && use == Use::input) {
      out_.warning_in("key-ignored", where, "qscheme", "leave the key out", "inputs are always per_tensor");
      per_channel = false;
    }
    set_rows(spec, per_channel);
    if (is_float)
      read_float(value, where, spec);
    else
      read_integer(value, where, spec);
    if (choice.mse && is_float && !choice.is_weight) choice.mse = false;  // upstream: the same as stats
    set_brevitas_numbers(spec, choice);
    if (out_.errors() != errors_before) return {};
    return Stages{spec};
  }

  void read_integer(const json::Value& value, const std::string& where, QuantizationSpec& spec) {
    for (const char* key : {"exponent_bit_width", "mantissa_bit_width"})
      if (!value[key].is_null()) out_.warning_in("key-ignored", where, key, nullptr, "int_quant has no such width");
    const std::string at = pointer_to(where, "bit_width");
    const int64_t bits = value["bit_width"].as_integer();
    if (bits < 2) {
      out_.error_in("value-invalid", at, nullptr, "use 2 to 16 bits", "{} bits are too few for a narrow range", bits);
    } else if (const auto dtype = integer_dtype(bits, spec.symmetric, at, out_)) {
      spec.dtype = *dtype;
    }
  }

  void read_float(const json::Value& value, const std::string& where, QuantizationSpec& spec) {
    const json::Value &exponent = value["exponent_bit_width"], &mantissa = value["mantissa_bit_width"];
    if (exponent.is_null() || mantissa.is_null()) {
      out_.error_in("key-missing", where, nullptr, "4 and 3 for fp8 e4m3, with bit_width 8",
                    "float_quant needs exponent_bit_width and mantissa_bit_width");
      return;
    }
    const int64_t e = exponent.as_integer(), m = mantissa.as_integer(), bits = value["bit_width"].as_integer();
    if (e < 1 || e > kMaxExponentBits) {
      out_.error_in("value-invalid", where, "exponent_bit_width",
                    "1 to 7; with 8 the largest value would not fit float32", "{} exponent bits", e);
    } else if (m < (is_old() ? 1 : 0) || m > kMaxMantissaBits) {
      out_.error_in("value-invalid", where, "mantissa_bit_width", is_old() ? "1 to 10" : "0 to 10", "{} mantissa bits",
                    m);
    } else if (bits != 1 + e + m) {
      out_.error_in("value-invalid", where, "bit_width", "bit_width is 8 when it is not given",
                    "bit_width is {}, a sign, {} and {} bits are {}", bits, e, m, 1 + e + m);
    }
    spec.dtype = Dtype::minifloat;
    spec.exponent_bits = static_cast<uint8_t>(e);
    spec.mantissa_bits = static_cast<uint8_t>(m);
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

  // Completes the list in place and checks the requirements between its members.
  void algorithms(json::Value& list, const std::string& where, bool before) {
    if (before && raw_["pre_quant_opt_config"].is_null()) {
      list = json::Value();
      out_.warning_in("default-preprocess", config_.where, nullptr,
                      "set it to [], or write [{\"name\": \"Preprocess\"}]",
                      "pre_quant_opt_config is absent, which means [Preprocess] in Brevitas: it folds batch norms and "
                      "equalizes layers before anything is quantized. Here that happens only if the key is written");
      return;
    }
    size_t searches = 0, preprocess = SIZE_MAX;
    for (size_t i = 0; i < list.items().size(); ++i) {
      json::Value& item = list.items()[i];
      const std::string place = text_of("{}/{}", where, i);
      const AlgorithmKeys* found = nullptr;
      List<std::string_view> known;
      const std::string name = item["name"].as_string();  // a copy: the item is replaced below
      for (const AlgorithmKeys& row : kAlgorithmTable) {
        if (row.name == name) found = &row;
        if (row.before == before) known.push_back(row.name);
      }
      if (!item.is_object()) {
        out_.error_in("type-invalid", place, nullptr, "write {\"name\": \"Preprocess\"}, with the fields that you set",
                      "expected an object with a name, found {} {q}", json::describe(item.kind()), item.as_string());
        continue;
      }
      if (found == nullptr) {
        unknown_word(name, pointer_to(place, "name"), std::span(known.data(), known.size()), out_);
        continue;
      }
      item = complete(item, place, found->keys, out_);
      if (found->before != before) {
        out_.error_in("value-invalid", place, "name",
                      before ? "it belongs to algo_config" : "it belongs to pre_quant_opt_config",
                      "{} does not belong in this list", name);
      }
      refuse_not_implemented(item, place);
      if (name == "Preprocess" && preprocess == SIZE_MAX) preprocess = i;
      const bool is_search = name == "GPTQ" || name == "GPFQ" || name == "GPFA2Q";
      if (is_search && searches++ != 0)
        out_.error_in("value-invalid", place, nullptr, nullptr, "only one of GPTQ, GPFQ and GPFA2Q can be applied");
      if (is_search && name != "GPTQ" && !has_inputs_)
        out_.error_in("key-missing", place, nullptr, "add input_tensors to global_quant_config",
                      "{} needs quantized inputs", name);
      if (name == "ActivationEqualization") {
        if (!item["is_layerwise"].as_bool())
          out_.error_in("value-invalid", place, "is_layerwise", nullptr, "the backend is layerwise");
        else
          out_.add({Severity::note, "equalization-folded", place,
                    "model files cannot store a multiplication before a layer, so the scales are folded into the layer "
                    "that produces its input; layers that read the same input share them",
                    ""});
      }
      check_numbers(item, place);
    }
    if (before && !list.items().empty() && preprocess != 0)
      out_.warning_in(
          "preprocess-order", where, nullptr, "the other steps expect a model that it has gone through",
          preprocess == SIZE_MAX ? "the list has no Preprocess" : "Preprocess is not the first of the list");
  }

  // What has no counterpart here (pipeline/calibration/algorithm_list.h).
  void refuse_not_implemented(const json::Value& item, const std::string& place) {
    const std::string& name = item["name"].as_string();
    if (name == "Preprocess" && item["channel_splitting_ratio"].as_number() > 0)
      out_.error_in("not-implemented", place, "channel_splitting_ratio", "leave the key out",
                    "channels are not split, because that changes the shapes of the model");
    else if (name == "GPFA2Q")
      out_.error_in("not-implemented", place, nullptr, "write GPFQ; Brevitas runs GPFA2Q as GPFQ since 0.12",
                    "the accumulator's bound of GPFA2Q is not applied");
    else if (name == "CalibrateBatchNorm")
      out_.error_in("not-implemented", place, nullptr, "remove the entry",
                    "statistics of batch norms are not estimated again");
  }

  void check_numbers(const json::Value& item, const std::string& where) {
    for (const char* key : {"alpha", "channel_splitting_ratio", "percentage_of_processed_inputs"}) {
      const json::Value* number = item.find(key);
      if (number != nullptr && !(number->as_number() >= 0 && number->as_number() <= 1))
        out_.error_in("value-invalid", where, key, nullptr, "expected a number from 0 to 1");
    }
    for (const char* key : {"equalize_iterations", "accumulator_bit_width"}) {
      const json::Value* number = item.find(key);
      if (number != nullptr && (number->as_integer() < 0 || number->as_integer() > 10'000))
        out_.error_in("value-invalid", where, key, nullptr, "expected a number from 0 to 10000");
    }
  }

  const json::Value& raw_;
  json::Value source_;
  DiagnosticList& out_;
  Config config_;
  BrevitasVersion version_ = BrevitasVersion::v0_12_1;
  bool has_inputs_ = false;
};

// Quark's and the extension's configs differ in the keys of their specs and the names of their algorithms.
bool is_of_brevitas(const json::Value& block) {
  for (const char* list : {"pre_quant_opt_config", "algo_config"})
    for (const json::Value& item : block[list].items())
      if (std::any_of(std::begin(kAlgorithmTable), std::end(kAlgorithmTable),
                      [&](const AlgorithmKeys& row) { return row.name == item["name"].as_string(); }))
        return true;
  for (const char* tensor : {"weight", "input_tensors", "output_tensors", "bias"})
    for (const char* key : {"bit_width", "quant_type", "param_type"})
      if (block["global_quant_config"][tensor].find(key) != nullptr) return true;
  return false;
}

}  // namespace

void set_brevitas_numbers(QuantizationSpec& spec, const BrevitasChoice& choice) noexcept {
  const bool is_integer = info_of(spec.dtype).is_integer, per_channel = spec.qscheme == QScheme::per_channel;
  spec.grid = brevitas_grid(choice.is_weight, choice.pof2, choice.version);
  spec.scale_type = choice.pof2 ? ScaleType::pof2 : ScaleType::float_;
  spec.observer_options.search = choice.version == BrevitasVersion::v0_10_3   ? SearchMethod::sections
                                 : choice.version == BrevitasVersion::v0_12_1 ? SearchMethod::grid
                                                                              : SearchMethod::interval;
  if (!choice.is_weight)
    spec.observer = !is_integer  ? ObserverId::PerTensorMeanMaxObserver
                    : choice.mse ? ObserverId::PerTensorMeanThresholdMSEObserver
                                 : ObserverId::PerTensorMeanPercentileObserver;
  else if (choice.mse)
    spec.observer =
        per_channel ? ObserverId::PerChannelThresholdMSEObserver : ObserverId::PerTensorThresholdMSEObserver;
}

constinit const DialectInfo brevitas_dialect{
    .keys = []() noexcept -> const Keys& { return kConfig; },
    .read = [](const json::Value& value, const std::string& where,
               DiagnosticList& out) { return BrevitasParser(value, where, out).parse(); },
    .write = write_brevitas,
    .own_keys = "brevitas_version|backend",
    .recognises = is_of_brevitas,
    .algorithms = []() noexcept -> std::span<const AlgorithmKeys> { return kAlgorithmTable; },
    .translate = translate_brevitas,
    .has_groups = false,
    .has_transposed_axes = true,
};

}  // namespace wasmquant::config
