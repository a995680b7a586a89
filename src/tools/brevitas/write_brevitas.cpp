// A config as that of Quark's Brevitas extension: one global layer config, and `exclude`, an addition of this library.
#include "config/dialects/convert.h"
#include "core/message.h"
#include "tools/brevitas/brevitas.h"

namespace wasmquant::config {
namespace {

class BrevitasWriter {
 public:
  explicit BrevitasWriter(DialectConversion& conversion) : conversion_(conversion) {}

  json::Value write() {
    const Config& config = conversion_.config();
    json::Value layer;
    const LayerRule* global = nullptr;
    for (const LayerRule& entry : conversion_.entries()) {
      // A config that names only Linear, as in model files, counts as a global one.
      if (entry.kind == LayerRule::Kind::global || (global == nullptr && entry.name == "Linear")) global = &entry;
    }
    for (const LayerRule& entry : conversion_.entries())
      if (&entry != global)
        conversion_.report_loss(entry.where, "the Brevitas extension has one config for all layers");
    if (global == nullptr) return nullptr;
    {
      const LayerConfig& from = global->layer;
      layer.set("input_tensors", tensor(from.input_tensors, global->where, false));
      layer.set("output_tensors", tensor(from.output_tensors, global->where, false));
      layer.set("weight", tensor(from.weight, conversion_.weight_where(*global), true));
      if (!from.bias.empty())
        conversion_.report_loss(global->where, "biases in Brevitas have the scale of input times weight");
    }
    json::Array exclude;
    for (size_t i = 0; i < config.exclude.size(); ++i)
      exclude.emplace_back(config.exact_names ? glob_of(config.exclude[i]) : config.exclude[i]);
    if (!exclude.empty())
      conversion_.report_loss(conversion_.exclude_where(0),
                              "the Brevitas extension excludes nothing; only this library understands `exclude`");
    conversion_.report_lost_options("algo_config|pre_quant_opt_config");
    json::Value out;
    out.set("dialect", "brevitas");
    out.set("global_quant_config", std::move(layer));
    json::Array before, after;
    algorithms("pre_quant_opt_config", before, after);
    algorithms("algo_config", before, after);
    out.set("pre_quant_opt_config", json::Value(std::move(before)));
    out.set("algo_config", json::Value(std::move(after)));
    out.set("exclude", json::Value(std::move(exclude)));
    return out;
  }

 private:
  json::Value tensor(const Stages& stages, const std::string& where, bool is_weight) {
    if (!conversion_.require_single_stage(stages, where)) return nullptr;
    QuantizationSpec spec = stages.front();
    const DtypeInfo& dtype = info_of(spec.dtype);
    if (dtype.is_block() || dtype.is_plain_cast()) {
      conversion_.report_loss(where, "Brevitas has no {}", dtype.name);
      return nullptr;
    }
    if (spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_block) {
      conversion_.report_loss(where, "Brevitas has no groups here: one scale for each channel instead");
      spec.qscheme = QScheme::per_channel;
      spec.ch_axis = 0;
    }
    conversion_.report_lost_choices(spec, where);
    if (spec.is_dynamic) conversion_.report_loss(where, "Brevitas' scales are fixed after calibration");
    if (spec.qscheme == QScheme::per_channel && !is_weight) {
      conversion_.report_loss(where, "Brevitas' activations are per tensor");
      spec.qscheme = QScheme::per_tensor;
    }

    BrevitasChoice choice;
    choice.is_weight = is_weight;
    choice.pof2 =
        spec.grid.threshold_rounding != ThresholdRounding::none || info_of(spec.observer).gives_powers_of_two();
    choice.mse = is_search(spec);
    if (choice.pof2 && !spec.symmetric) {
      conversion_.report_loss(where, "Brevitas has no asymmetric weights with power-of-two scales");
      choice.pof2 = false;
    }
    if (!choice.mse && !choice.pof2 && !is_min_max(spec) && spec.grid == RoundingGrid())
      conversion_.report_loss(where, "Brevitas has no counterpart of {}", info_of(spec.observer).name);
    const FloatFormat format = dtype.is_integer ? FloatFormat{} : float_format_of(spec);
    if (!dtype.is_integer && !format.is_signed) {
      conversion_.report_loss(where, "Brevitas' floats have a sign");
      return nullptr;
    }
    if (!dtype.is_integer && format.specials != Specials::none)
      conversion_.report_loss(where, "in Brevitas {} has no NaN and a different largest value", dtype.name);
    QuantizationSpec here = spec;
    set_brevitas_numbers(here, choice);
    conversion_.compare_numbers(spec, here, where);

    json::Value out;
    out.set("qscheme", spec.qscheme == QScheme::per_tensor ? "per_tensor" : "per_channel");
    out.set("symmetric", spec.symmetric);
    out.set("scale_type", choice.pof2 ? "pof2" : "float");
    out.set("quant_type", dtype.is_integer ? "int_quant" : "float_quant");
    out.set("param_type", choice.mse ? "mse" : "stats");
    out.set("bit_width", static_cast<int64_t>(dtype.is_integer ? dtype.bits : code_bits_of(spec)));
    if (!dtype.is_integer) {
      out.set("exponent_bit_width", static_cast<int64_t>(format.exponent_bits));
      out.set("mantissa_bit_width", static_cast<int64_t>(format.mantissa_bits));
    }
    return out;
  }

  void algorithms(const char* key, json::Array& before, json::Array& after) {
    const json::Array& items = conversion_.config().source[key].items();
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string& name = items[i]["name"].as_string();
      json::Value out;
      if (name == "smooth" || name == "smoothquant") {
        out.set("name", "ActivationEqualization");
        if (const json::Value* alpha = items[i].find("alpha")) {
          if (alpha->as_number() >= 0 && alpha->as_number() <= 1)
            out.set("alpha", *alpha);
          else
            conversion_.report_loss(text_of("{}/{}/{}/alpha", conversion_.config().where, key, i),
                                    "Brevitas's alpha is a number from 0 to 1");
        }
        before.push_back(std::move(out));
      } else if (name == "gptq") {
        out.set("name", "GPTQ");
        // Quark's default is true.
        out.set("act_order", items[i]["desc_act"].is_null() || items[i]["desc_act"].as_bool());
        after.push_back(std::move(out));
      } else {
        conversion_.report_loss(text_of("{}/{}/{}", conversion_.config().where, key, i),
                                "Brevitas has no counterpart of {}", name);
      }
    }
  }

  DialectConversion& conversion_;
};

}  // namespace

json::Value write_brevitas(DialectConversion& conversion) { return BrevitasWriter(conversion).write(); }

}  // namespace wasmquant::config
