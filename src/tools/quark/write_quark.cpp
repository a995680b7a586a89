// A config of any dialect in Quark's keys.
#include "config/dialects/convert.h"
#include "config/dialects/write.h"
#include "config/match/name_match.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"
#include "tools/quark/quark_config.h"

namespace wasmquant::config {
namespace {

// Brevitas' plain families by the widths of Quark's dtypes; the 8-bit ones have different largest values there.
Dtype quark_float(const QuantizationSpec& spec, bool& exact) {
  exact = true;
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::fp6_e3m2, Dtype::fp6_e2m3, Dtype::fp4}) {
    const DtypeInfo& info = info_of(dtype);
    if (info.exponent_bits != spec.exponent_bits || info.mantissa_bits != spec.mantissa_bits) continue;
    exact = info.bits < 8;
    return dtype;
  }
  return Dtype::minifloat;
}

ObserverId observer_of(const QuantizationSpec& spec) {
  const bool channel = spec.qscheme == QScheme::per_channel;
  const bool mse = is_search(spec);
  if (spec.grid.threshold_rounding != ThresholdRounding::none && channel)
    return mse ? ObserverId::PerChannelPowOf2MinMSEObserver : ObserverId::PerChannelPowOf2MinMaxObserver;
  if (spec.grid.threshold_rounding != ThresholdRounding::none)
    return mse ? ObserverId::PerTensorPowOf2MinMSEObserver : ObserverId::PerTensorPowOf2MinMaxObserver;
  if (channel) return ObserverId::PerChannelMinMaxObserver;
  if (mse) return ObserverId::PerTensorMSEObserver;
  return is_min_max(spec) ? ObserverId::PerTensorMinMaxObserver : ObserverId::PerTensorPercentileObserver;
}

class QuarkWriter {
 public:
  explicit QuarkWriter(DialectConversion& conversion) : conversion_(conversion), out_(conversion.config()) {}

  json::Value write() {
    const Config& config = conversion_.config();
    out_.source = json::Object{};
    out_.dialect = Dialect::quark;
    layer(out_.global, config.global.where);
    List<std::pair<std::string, LayerConfig>> types;
    for (auto& [name, entry] : out_.layer_type) {
      bool known = false;
      for (const std::string_view type : kLayerTypes) known |= type == name;
      layer(entry, entry.where);
      if (known)
        types.emplace_back(name, std::move(entry));
      else if (!entry.weight.empty() || !entry.output_tensors.empty())
        conversion_.report_loss(entry.where, "Quark quantizes no layers of class {}", name);
    }
    out_.layer_type = std::move(types);
    for (auto& [name, entry] : out_.layer) {
      layer(entry, entry.where);
      // aihwkit does not look below a module that an entry leaves as it is.
      if (config.exact_names && entry == LayerConfig()) out_.exclude.push_back(name);
      if (config.exact_names) name = glob_of(name);
    }
    if (config.exact_names)
      for (std::string& name : out_.exclude) name = name.empty() ? "*" : glob_of(name);
    if (config.excludes_below() && !out_.excludes_below()) exclude_below();
    inputs();
    algorithms(config.source);
    return to_json(out_);
  }

 private:
  void layer(LayerConfig& layer, const std::string& where) {
    const std::string at_weight = text_of("{}/{}", where, out_.weight_key);
    for (auto* stages : {&layer.weight, &layer.input_tensors, &layer.output_tensors, &layer.bias})
      for (size_t i = 0; i < stages->size(); ++i)
        if (!spec((*stages)[i], stages == &layer.weight ? at_weight : where)) stages->clear();
  }

  bool spec(QuantizationSpec& spec, const std::string& where) {
    if (spec.dtype == Dtype::minifloat) {
      bool exact;
      spec.dtype = quark_float(spec, exact);
      if (spec.dtype == Dtype::minifloat) {
        conversion_.report_loss(where, "Quark has no float of {} exponent and {} mantissa bits", spec.exponent_bits + 0,
                                spec.mantissa_bits + 0);
        return false;
      }
      if (!exact)
        conversion_.report_loss(where, "{} has codes for NaN there, and a smaller largest value",
                                info_of(spec.dtype).name);
      spec.exponent_bits = spec.mantissa_bits = 0;
    }
    if (info_of(spec.dtype).is_integer && spec.dtype != Dtype::int8 && spec.scale_format == ScaleFormat::e8m0) {
      conversion_.report_loss(where, "Quark's integers with e8m0 scales have 8 bits: float32 scales instead");
      spec.scale_format = ScaleFormat::float32;
    }
    if (spec.grid == RoundingGrid()) return true;
    QuantizationSpec here = spec;
    here.observer = observer_of(spec);
    here.grid = {};
    here.observer_options = {};
    here.scale_type = ScaleType::float_;
    conversion_.compare_numbers(spec, here, where);
    spec = here;
    return true;
  }

  // What is below an excluded module, as patterns of their own.
  void exclude_below() {
    for (size_t i = 0, count = out_.exclude.size(); i < count; ++i)
      if (const std::string& name = out_.exclude[i]; !is_regex(name) && !name.ends_with('*'))
        out_.exclude.push_back(text_of("{}.*", name));
  }

  void inputs() {
    for (const auto& [name, stages] : conversion_.config().input_quantizers) {
      const std::string where =
          pointer_to(text_of("{}/input_activation_qconfig_map", conversion_.config().where), name);
      if (stages.empty()) continue;
      LayerConfig* found = nullptr;
      for (auto& [layer_name, layer] : out_.layer)
        if (layer_name == glob_of(name)) found = &layer;
      if (found == nullptr) {
        conversion_.report_loss(where,
                                "Quark quantizes inputs as part of a layer's own config, and this module has none");
        continue;
      }
      QuantizationSpec input = stages.front();
      if (spec(input, where)) found->input_tensors = Stages{input};
    }
    out_.input_quantizers.clear();
  }

  // The algorithms that both sides support, in Quark's spelling.
  void algorithms(const json::Value& source) {
    json::Array steps;
    const auto step = [&](const char* name) -> json::Value& {
      json::Value value;
      value.set("name", name);
      steps.push_back(std::move(value));
      return steps.back();
    };
    const Dialect from = conversion_.config().dialect;
    if (from == Dialect::gptq || from == Dialect::awq) {
      const bool gptq = from == Dialect::gptq;
      json::Value& value = step(gptq ? "gptq" : "awq");
      conversion_.losses().add({Severity::note, "option-lost", conversion_.config().where,
                                text_of("the block says that {} made a file, and is itself only rounded to nearest; "
                                        "the converted config asks for the algorithm, which needs calibration",
                                        name_of(from)),
                                ""});
      if (gptq) {
        value.set("damp_percent", source["damp_percent"]);
        value.set("desc_act", source["desc_act"]);
      }
    }
    for (const char* list : {"pre_quant_opt_config", "algo_config"}) {
      const json::Array& items = source[list].items();
      if (from != Dialect::brevitas) break;
      for (size_t i = 0; i < items.size(); ++i) {
        const std::string& name = items[i]["name"].as_string();
        if (name == "ActivationEqualization") {
          step("smooth").set("alpha", items[i]["alpha"]);
        } else if (name == "GPTQ") {
          step("gptq").set("desc_act", items[i]["act_order"]);
        } else {
          conversion_.report_loss(text_of("{}/{}/{}", conversion_.config().where, list, i),
                                  "Quark has no counterpart of {}", name);
        }
      }
    }
    if (!steps.empty()) out_.source.set("algo_config", json::Value(std::move(steps)));
  }

  DialectConversion& conversion_;
  Config out_;
};

}  // namespace

json::Value write_quark(DialectConversion& conversion) { return QuarkWriter(conversion).write(); }

}  // namespace wasmquant::config
