// A config as the quantization_config of a model file: compressed-tensors, GPTQ, AWQ (formats B.1 to B.3).
#include "config/dialects/convert.h"
#include "config/match/name_match.h"
#include "config/spec/compressed_tensors_arguments.h"
#include "config/spec/uniform_blocks.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

// Everything below an excluded module is excluded too, unless the config says that only what matches is.
std::string excluded_regex(const Config& config, std::string_view entry) {
  std::string text = regex_of(config.exact_names ? glob_of(entry) : std::string(entry));
  if (is_regex(entry) || text.ends_with(".*$") || !config.excludes_below()) return text;
  text.pop_back();
  return text + "(\\..*)?$";
}

void note_whole_rows(DialectConversion& conversion, const QuantizationSpec& spec, const std::string& where) {
  if (spec.qscheme == QScheme::per_group && spec.group_size == -1)
    conversion.losses().add({Severity::note, "option-lost", where,
                             "groups of whole rows are written as channels, which have the same scales", ""});
}

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
    if (!conversion_.is_one_step(stages, where)) return nullptr;
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
                                text_of("compressed-tensors has one spelling of integers with zero points: {} is read "
                                        "back as u{}, the same grid",
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

class GptqAwqWriter {
 public:
  GptqAwqWriter(DialectConversion& conversion, Dialect to) : conversion_(conversion), to_(to) {}

  json::Value write() {
    const LayerRule* global = nullptr;
    for (const LayerRule& entry : conversion_.entries())
      if (entry.kind == LayerRule::Kind::global || (global == nullptr && entry.name == "Linear")) global = &entry;
    const auto standard = global != nullptr ? scheme(*global) : std::nullopt;
    if (!standard) return nullptr;
    if (global->kind != LayerRule::Kind::global) {
      covers_more_ = true;
      conversion_.report_loss(global->where, "{} has one scheme for all classes, not only for {}", name_of(to_),
                              global->name);
    }
    json::Value dynamic{json::Object{}};
    for (const LayerRule& entry : conversion_.entries()) {
      if (&entry == global) continue;
      const auto own = scheme(entry);
      if (own == standard) continue;
      if (to_ == Dialect::awq || entry.kind == LayerRule::Kind::type) {
        covers_more_ = true;
        conversion_.report_loss(entry.where, "{} has one scheme for all {}", name_of(to_),
                                to_ == Dialect::awq ? "layers" : "classes");
        continue;
      }
      const std::string name = entry.kind == LayerRule::Kind::name ? glob_of(entry.name) : entry.name;
      const bool leaves_all = conversion_.config().exact_names && !own;
      const std::string regex = leaves_all ? excluded_regex(conversion_.config(), entry.name) : regex_of(name);
      dynamic.set(text_of("{}:{}", own ? "+" : "-", regex), own ? gptq_scheme(*own) : json::Value(json::Object{}));
    }
    json::Value out = to_ == Dialect::gptq ? gptq(*standard, dynamic) : awq(*standard);
    conversion_.report_lost_options(to_ == Dialect::gptq ? "algo_config" : "");
    if (covers_more_ && out["group_size"].as_integer() > 0) {
      out.set("indivisible_groups", "fallback");
      conversion_.losses().add(
          {Severity::note, "option-lost", global->where,
           text_of("the scheme covers more layers in {}: those whose rows its groups do not divide "
                   "get smaller groups or one scale a row here (indivisible_groups)",
                   name_of(to_)),
           ""});
    }
    return out;
  }

 private:
  // Nullopt if the dialect cannot express it, or there is no weight.
  std::optional<UniformScheme> scheme(const LayerRule& entry) {
    const std::string where = conversion_.weight_where(entry);
    conversion_.report_lost_activations(entry);
    if (entry.layer.weight.empty()) return std::nullopt;
    const QuantizationSpec& spec = entry.layer.weight.front();
    const DtypeInfo& dtype = info_of(spec.dtype);
    const bool bits = to_ == Dialect::awq ? dtype.bits == 4
                                          : dtype.bits == 2 || dtype.bits == 3 || dtype.bits == 4 || dtype.bits == 8;
    const bool rows = spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_channel;
    if (!dtype.is_integer || !bits || !rows || entry.layer.weight.size() > 1) {
      conversion_.report_loss(where, "{} has no {} {}", name_of(to_), dtype.name,
                              rows ? "weights" : "with one scale for the tensor");
      return std::nullopt;
    }
    if (dtype.is_signed && !spec.symmetric)
      conversion_.report_loss(where, "{} stores codes with zero points unsigned: {} becomes u{}", name_of(to_),
                              dtype.name, dtype.name);
    if (to_ == Dialect::awq && spec.symmetric)
      conversion_.report_loss(where, "AWQ runtimes expect zero points: they read asymmetric uint4");
    note_whole_rows(conversion_, spec, where);
    QuantizationSpec compared = spec;
    if (spec.qscheme == QScheme::per_group) compared.ch_axis = 0;
    conversion_.report_lost_choices(compared, where);
    QuantizationSpec here = spec;
    here.grid = {};
    conversion_.compare_numbers(spec, here, where);
    if (!is_min_max(spec))
      conversion_.report_loss(where, "this format has no key for observers, such as {}", info_of(spec.observer).name);
    covers_more_ |= spec.scale_format != ScaleFormat::float32 || spec.grid.pads_groups;
    return uniform_scheme(spec);
  }

  // The first matching expression decides, so those of excluded layers come first.
  json::Value gptq(const UniformScheme& standard, json::Value& layers) {
    const Config& config = conversion_.config();
    bool lm_head = true;
    json::Value dynamic{json::Object{}};
    for (const std::string& name : config.exclude) {
      if (name == "lm_head")
        lm_head = false;
      else
        dynamic.set(text_of("-:{}", excluded_regex(config, name)), json::Value(json::Object{}));
    }
    for (auto& [pattern, own] : layers.members()) dynamic.set(pattern, std::move(own));
    json::Value order = false;
    const json::Array& items = config.source["algo_config"].items();
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string& name = items[i]["name"].as_string();
      if (name == "gptq" || name == "GPTQ")
        conversion_.losses().add(
            {Severity::note, "option-lost", text_of("{}/algo_config/{}", config.where, i),
             "a gptq block says that GPTQ made the file: read as a config, it only rounds to nearest", ""});
      if (name == "gptq" || name == "GPTQ")
        order = name == "GPTQ"                   ? items[i]["act_order"]
                : items[i]["desc_act"].is_null() ? json::Value(true)
                                                 : items[i]["desc_act"];
      else
        conversion_.report_loss(text_of("{}/algo_config/{}", config.where, i), "gptq has no {}", name);
    }
    return gptq_block(standard, order.as_bool(), lm_head, std::move(dynamic));
  }

  json::Value awq(const UniformScheme& standard) {
    const Config& config = conversion_.config();
    json::Array kept;
    for (size_t i = 0; i < config.exclude.size(); ++i) {
      // Its reader searches the text anywhere in a name.
      std::string_view name = config.exclude[i];
      if (!config.exact_names && !is_regex(name)) {
        while (name.starts_with('*')) name.remove_prefix(1);
        while (name.ends_with('*')) name.remove_suffix(1);
      }
      if (name.empty() || (!config.exact_names && is_glob(name))) {
        covers_more_ = true;
        conversion_.report_loss(conversion_.exclude_where(i),
                                "AWQ leaves layers out by a part of their names, not by pattern");
      } else {
        kept.emplace_back(name);
      }
    }
    bool lm_head = true;
    for (const std::string& name : config.exclude) lm_head &= name != "lm_head" && name != "*lm_head*";
    return awq_block(standard, lm_head, std::move(kept));
  }

  DialectConversion& conversion_;
  Dialect to_;
  bool covers_more_ = false;  // layers that the config leaves, or gives a spec whose last group may be short
};

}  // namespace

json::Value write_compressed_tensors(DialectConversion& conversion) { return GroupWriter(conversion).write(); }
json::Value write_gptq_awq(DialectConversion& conversion, Dialect to) { return GptqAwqWriter(conversion, to).write(); }

}  // namespace wasmquant::config
