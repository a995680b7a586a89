// A config as the quantization_config of a GPTQ or AWQ model (formats B.2, B.3): one scheme, and exceptions.
#include "config/match/name_match.h"
#include "config/spec/uniform_blocks.h"
#include "core/message.h"
#include "tools/gptq_awq/gptq_awq.h"

namespace wasmquant::config {
namespace {

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

json::Value write_gptq(DialectConversion& conversion) { return GptqAwqWriter(conversion, Dialect::gptq).write(); }
json::Value write_awq(DialectConversion& conversion) { return GptqAwqWriter(conversion, Dialect::awq).write(); }

}  // namespace wasmquant::config
