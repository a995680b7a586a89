// A config as the quantization_config of a compressed-tensors model (formats B.1): groups of layers with one scheme each.
#include "config/dialects/convert.h"
#include "config/match/name_match.h"
#include "core/message.h"
#include "tools/compressed_tensors/compressed_tensors_arguments.h"

namespace wasmquant::config {
namespace {

class GroupWriter {
 public:
  explicit GroupWriter(DialectConversion& conversion) : conversion_(conversion) {}

  json::Value write() {
    const Config& config = conversion_.config();
    bool linear = false;
    for (const LayerRule& entry : conversion_.entries()) {
      linear |= entry.kind == LayerRule::Kind::type && entry.name == "Linear";
      if (entry.kind == LayerRule::Kind::global) {
        if (!linear) add(entry, "Linear");
        conversion_.losses().add({Severity::note, "option-lost", entry.where,
                                  "of the classes that a global config covers, only Linear is written", ""});
      } else {
        add(entry, entry.kind == LayerRule::Kind::pattern ? text_of("re:{}", regex_of(entry.name)) : entry.name);
      }
    }
    for (const std::string& name : config.exclude) {
      const bool plain = config.exact_names || !is_glob(name);
      if (plain) ignore_.emplace_back(name);
      if (!plain || name != "lm_head") ignore_.emplace_back(text_of("re:{}", excluded_regex(config, name)));
    }
    conversion_.report_lost_options("");
    if (groups_.empty()) return nullptr;
    json::Value groups{json::Object{}};
    for (size_t i = 0; i < groups_.size(); ++i) {
      json::Value block;
      block.set("targets", json::Value(std::move(groups_[i].targets)));
      block.set("weights", std::move(groups_[i].weights));
      block.set("input_activations", std::move(groups_[i].inputs));
      block.set("output_activations", std::move(groups_[i].outputs));
      groups.set(text_of("group_{}", i), std::move(block));
    }
    json::Value out;
    out.set("quant_method", "compressed-tensors");
    out.set("config_groups", std::move(groups));
    out.set("ignore", json::Value(std::move(ignore_)));
    out.set("kv_cache_scheme", nullptr);
    return out;
  }

 private:
  struct Group {
    json::Array targets;
    json::Value weights, inputs, outputs;
  };

  void add(const LayerRule& entry, std::string target) {
    Group group;
    group.weights = arguments(entry.layer.weight, conversion_.weight_where(entry), false);
    group.inputs = arguments(entry.layer.input_tensors, entry.where, true);
    group.outputs = arguments(entry.layer.output_tensors, entry.where, true);
    if (!entry.layer.bias.empty()) conversion_.report_loss(entry.where, "compressed-tensors never quantizes biases");
    if (group.weights.is_null() && group.inputs.is_null() && group.outputs.is_null()) {
      if (entry.kind != LayerRule::Kind::global) ignore_.emplace_back(std::move(target));
      return;
    }
    for (Group& known : groups_) {
      if (!(known.weights == group.weights) || !(known.inputs == group.inputs) || !(known.outputs == group.outputs))
        continue;
      known.targets.emplace_back(std::move(target));
      return;
    }
    group.targets.emplace_back(std::move(target));
    groups_.push_back(std::move(group));
  }

  json::Value arguments(const Stages& stages, const std::string& where, bool is_activation) {
    if (!conversion_.require_single_stage(stages, where)) return nullptr;
    QuantizationSpec spec = stages.front();
    const DtypeInfo& dtype = info_of(spec.dtype);
    const bool is_float = !dtype.is_integer;
    if (spec.scale_format == ScaleFormat::e5m3 || dtype.bits > 8 || dtype.is_block() ||
        (is_float && spec.dtype != Dtype::fp8_e4m3 && spec.dtype != Dtype::fp4)) {
      conversion_.report_loss(where, "compressed-tensors has no {}{}", dtype.name,
                              spec.scale_format == ScaleFormat::e5m3 ? " with e5m3 scales" : "");
      return nullptr;
    }
    if (spec.dtype == Dtype::fp4 && spec.qscheme == QScheme::per_group && spec.scale_format == ScaleFormat::float32) {
      conversion_.report_loss(where, "compressed-tensors has groups of fp4 only with e8m0 or e4m3 scales");
      return nullptr;
    }
    note_whole_rows(conversion_, spec, where);
    const bool token = spec.qscheme == QScheme::per_channel && spec.is_dynamic;
    if (token) spec.ch_axis = 0;
    conversion_.report_lost_choices(spec, where);
    QuantizationSpec here = spec;
    here.grid = {};
    conversion_.compare_numbers(spec, here, where);
    if (!is_min_max(spec))
      conversion_.report_loss(where, "this format has no key for observers, such as {}", info_of(spec.observer).name);
    if (dtype.is_integer && dtype.is_signed && !spec.symmetric)
      conversion_.losses().add({Severity::note, "option-lost", where,
                                text_of("compressed-tensors stores all integers with zero points as unsigned: {} is "
                                        "read back as u{}, with the same values",
                                        dtype.name, dtype.name),
                                ""});
    if (dtype.is_integer && spec.symmetric && !dtype.is_signed)
      conversion_.report_loss(
          where, "{} is written with a zero point: symmetric integers are signed in compressed-tensors", dtype.name);
    return compressed_tensors_arguments(spec, is_activation);
  }

  DialectConversion& conversion_;
  List<Group> groups_;
  json::Array ignore_;
};

}  // namespace

json::Value write_compressed_tensors(DialectConversion& conversion) { return GroupWriter(conversion).write(); }

}  // namespace wasmquant::config
