// A config as aihwkit's QuantizationMap, which has only exact names and exact classes; the global config becomes
// entries for its classes that have a quantized module.
#include "config/dialects/convert.h"
#include "config/match/name_match.h"
#include "core/message.h"
#include "tools/aihwkit/aihwkit.h"
#include "tools/aihwkit/aihwkit_grid.h"

namespace wasmquant::config {
namespace {

class AihwkitWriter {
 public:
  explicit AihwkitWriter(DialectConversion& conversion) : conversion_(conversion) {}

  json::Value write() {
    const Config& config = conversion_.config();
    json::Value modules{json::Object{}}, instances{json::Object{}};
    inputs_ = json::Object{};
    for (const LayerRule& entry : conversion_.entries()) {
      switch (entry.kind) {
        case LayerRule::Kind::pattern:
          conversion_.report_loss(entry.where, "aihwkit has names, not patterns: name the layers one by one");
          break;
        case LayerRule::Kind::name:
          instances.set(entry.name, module(entry, "Linear"));
          break;
        case LayerRule::Kind::type:
          if (!is_aihwkit_class(entry.name)) {
            conversion_.report_loss(entry.where, "aihwkit quantizes no layers of class {}", entry.name);
            break;
          }
          modules.set(entry.name, module(entry, entry.name));
          break;
        case LayerRule::Kind::global:
          for (const char* type : {"Linear", "Conv2d"})
            if (modules.find(type) == nullptr) modules.set(type, module(entry, type));
      }
    }
    json::Array excluded;
    for (size_t i = 0; i < config.exclude.size(); ++i) {
      if (is_glob(config.exclude[i]))
        conversion_.report_loss(conversion_.exclude_where(i), "aihwkit excludes by name, not by pattern");
      else
        excluded.emplace_back(config.exclude[i]);
    }
    conversion_.report_lost_options("");
    json::Value out;
    out.set("dialect", "aihwkit");
    out.set("module_qconfig_map", std::move(modules));
    out.set("instance_qconfig_map", std::move(instances));
    out.set("input_activation_qconfig_map", std::move(inputs_));
    out.set("excluded_modules", json::Value(std::move(excluded)));
    return out;
  }

 private:
  json::Value module(const LayerRule& entry, std::string_view type) {
    json::Value quantization;
    quantization.set("activation_quant", tensor(entry.layer.output_tensors, entry.where, false));
    quantization.set("weight_quant", tensor(entry.layer.weight, conversion_.weight_where(entry), true));
    if (!entry.layer.bias.empty()) conversion_.report_loss(entry.where, "aihwkit never quantizes biases");
    if (!entry.layer.input_tensors.empty()) {
      if (entry.kind == LayerRule::Kind::name)
        inputs_.set(entry.name, tensor(entry.layer.input_tensors, entry.where, false));
      else if (type != "Conv2d" || entry.kind == LayerRule::Kind::type)
        conversion_.report_loss(entry.where, "aihwkit quantizes inputs of modules that are named, not of classes");
    }
    json::Value out;
    out.set("quantized_module", text_of("Quant{}", type));
    out.set("module_qconfig", std::move(quantization));
    return out;
  }

  json::Value tensor(const Stages& stages, const std::string& where, bool is_weight) {
    json::Value out;
    out.set("n_bits", 0);
    if (!conversion_.require_single_stage(stages, where)) return out;
    const QuantizationSpec& spec = stages.front();
    const DtypeInfo& dtype = info_of(spec.dtype);
    if (!dtype.is_integer) {
      conversion_.report_loss(where, "aihwkit has only integers, not {}", dtype.name);
      return out;
    }
    if (spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_block)
      conversion_.report_loss(where, "aihwkit has no groups: one scale for each channel instead");
    conversion_.report_lost_choices(spec, where);
    if (spec.is_dynamic) conversion_.report_loss(where, "aihwkit's ranges are fixed after calibration");
    const bool mse = is_search(spec), min_max = is_min_max(spec);
    if (!mse && !min_max && spec.grid == RoundingGrid())
      conversion_.report_loss(where, "aihwkit has no counterpart of {}", info_of(spec.observer).name);
    QuantizationSpec here = spec;
    here.grid = aihwkit_grid();
    conversion_.compare_numbers(spec, here, where);

    out.set("n_bits", static_cast<int64_t>(dtype.bits));
    out.set("symmetric", spec.symmetric);
    if (is_weight) out.set("per_channel", spec.qscheme != QScheme::per_tensor);
    out.set("range_estimator", mse ? "MSE" : is_weight ? "current_minmax" : "allminmax");
    return out;
  }

  DialectConversion& conversion_;
  json::Value inputs_;
};

}  // namespace

json::Value write_aihwkit(DialectConversion& conversion) { return AihwkitWriter(conversion).write(); }

}  // namespace wasmquant::config
