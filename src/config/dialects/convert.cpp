// The comparisons that find what another dialect cannot express, and the table of writers.
#include "config/dialects/convert.h"

#include "config/match/name_match.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

void fill_from(LayerConfig& layer, const LayerConfig& standard) {
  if (layer.weight.empty()) layer.weight = standard.weight;
  if (layer.bias.empty()) layer.bias = standard.bias;
  if (layer.input_tensors.empty()) layer.input_tensors = standard.input_tensors;
  if (layer.output_tensors.empty()) layer.output_tensors = standard.output_tensors;
}

}  // namespace

DialectConversion::DialectConversion(const Config& config, Dialect to) : config_(config), to_(to) {
  const bool fall_through = config.resolution == Resolution::field;
  const auto add = [&](LayerRule::Kind kind, const std::string& name, const LayerConfig& layer,
                       const std::string& where) {
    entries_.push_back({kind, name, layer, where});
    if (fall_through && name != "Embedding") fill_from(entries_.back().layer, config.global);
  };
  const auto place = [&](const char* map, const std::string& name, const LayerConfig& layer) {
    return !layer.where.empty() ? layer.where : pointer_to(text_of("{}/{}", config.where, map), name);
  };
  for (const auto& [name, layer] : config.layer)
    add(!config.exact_names && is_glob(name) ? LayerRule::Kind::pattern : LayerRule::Kind::name, name, layer,
        place("layer_quant_config", name, layer));
  for (const auto& [name, layer] : config.layer_type)
    add(LayerRule::Kind::type, name, layer, place("layer_type_quant_config", name, layer));
  if (!(config.global == LayerConfig()))
    entries_.push_back(
        {LayerRule::Kind::global, "", config.global,
         info_of(config.dialect).maps_entries ? text_of("{}/global_quant_config", config.where) : config.global.where});
}

std::string DialectConversion::exclude_where(size_t entry) const {
  return entry < config_.exclude_where.size() ? config_.exclude_where[entry]
                                              : text_of("{}/exclude/{}", config_.where, entry);
}
std::string DialectConversion::weight_where(const LayerRule& entry) const {
  return text_of("{}/{}", entry.where, config_.weight_key);
}

void DialectConversion::add_loss(const std::string& where, const char* pattern, message::Values values) {
  std::string text = message::write(pattern, values);
  for (const Diagnostic& known : losses_.items())
    if (known.where == where && known.message == text) return;
  losses_.add({Severity::warning, "option-lost", where, std::move(text), ""});
}

bool DialectConversion::require_single_stage(const Stages& stages, const std::string& where) {
  if (stages.size() > 1) report_loss(where, "{} quantizes each tensor in one step", name_of(to_));
  return stages.size() == 1;
}

void DialectConversion::compare_numbers(const QuantizationSpec& have, const QuantizationSpec& get,
                                        const std::string& where) {
  const RoundingGrid &a = have.grid, &b = get.grid;
  std::string names;
  const auto differ = [&](bool different, const char* name) {
    if (!different) return;
    if (!names.empty()) names += ", ";
    names += name;
  };
  differ(a.divisor != b.divisor, "divisor of the scale");
  differ(a.narrow != b.narrow, "number of codes");
  differ(have.symmetric && a.sign_by_data != b.sign_by_data, "signedness by the data");
  differ(a.divides != b.divides, "division by the scale");
  differ(!have.symmetric && a.zero_point_order != b.zero_point_order, "place of the zero point");
  differ(!have.symmetric && a.max_includes_zero != b.max_includes_zero, "ranges without 0");
  differ(a.threshold_rounding != b.threshold_rounding, "power-of-two rule");
  differ(a.smallest_scale != b.smallest_scale || a.smallest_threshold != b.smallest_threshold, "smallest scale");
  differ(is_search(have) && !(a == b), "search of the range");
  differ(!is_search(have) && !is_min_max(have) && have.observer != get.observer, "choice of the range");
  if (!names.empty()) report_loss(where, "{} computes with its own numbers: {}", name_of(to_), names);
}

bool is_search(const QuantizationSpec& spec) noexcept {
  switch (info_of(spec.observer).method) {
    case ObserverMethod::mse:
    case ObserverMethod::mse_last_bins:
    case ObserverMethod::pow2_min_mse:
    case ObserverMethod::range_mse:
    case ObserverMethod::range_cross_entropy:
    case ObserverMethod::threshold_mse:
    case ObserverMethod::mean_threshold_mse:
    case ObserverMethod::mx_diffs:
    case ObserverMethod::per_scale_mse:
    case ObserverMethod::half_quadratic:
      return true;
    default:
      return false;
  }
}

bool is_min_max(const QuantizationSpec& spec) noexcept {
  switch (info_of(spec.observer).method) {
    case ObserverMethod::min_max:
    case ObserverMethod::block_max:
    case ObserverMethod::mean_max:
      return true;
    case ObserverMethod::last_range:
    case ObserverMethod::moving_range:
      return spec.observer_options.tail_percent == 0;
    default:
      return false;
  }
}

void DialectConversion::report_lost_choices(const QuantizationSpec& spec, const std::string& where) {
  const std::string_view to = name_of(to_);
  if (spec.round_method != RoundMethod::half_even)
    report_loss(where, "{} always rounds half to even, not by {}", to, word_of(spec.round_method, kRoundMethods));
  if (spec.scale_type != ScaleType::float_ && spec.grid.threshold_rounding == ThresholdRounding::none)
    report_loss(where, "{} has no key for scales of type {}", to, word_of(spec.scale_type, kScaleTypes));
  if (spec.zero_point_type == ZeroPointType::float32) report_loss(where, "{} supports only whole zero points", to);
  if (spec.scale_sign != ScaleSign::positive) report_loss(where, "{} has no key for signed scales", to);
  if (refits_calibrated(spec)) report_loss(where, "{} has no key for scales that are refit", to);
  if (spec.scale_format != ScaleFormat::float32 && !info_of(to_).has_scale_formats)
    report_loss(where, "{} has no {} scales", to, word_of(spec.scale_format, kScaleFormats));
  if (info_of(spec.dtype).is_integer && spec.symmetric && !info_of(spec.dtype).is_signed)
    report_loss(where, "{} has no symmetric unsigned codes", to);
  if (spec.qscheme == QScheme::per_channel && spec.ch_axis != 0)
    report_loss(where, "{} has channels only along axis 0, not {}", to, spec.ch_axis);
}

void DialectConversion::report_lost_options(std::string_view understood) {
  if (config_.export_info)
    report_loss(text_of("{}/export", config_.where), "{} has no counterpart of export", name_of(to_));
  for (const auto& [name, stages] : config_.input_quantizers)
    if (!stages.empty())
      report_loss(pointer_to(text_of("{}/input_activation_qconfig_map", config_.where), name),
                  "{} cannot quantize only the input of a module", name_of(to_));
  for (const char* key :
       {"algo_config", "pre_quant_opt_config", "kv_cache_quant_config", "shared_scale_groups", "softmax_quant_spec",
        "sync_moe_expert_input_amax", "kv_cache_scheme", "sparsity_config", "transform_config"}) {
    const json::Value* value = config_.source.find(key);
    if (value == nullptr || index_in(key, understood) >= 0) continue;
    if (value->is_null() || (value->is_bool() && !value->as_bool()) || (value->is_array() && value->items().empty()) ||
        (value->is_object() && value->members().empty()))
      continue;
    report_loss(text_of("{}/{}", config_.where, key), "{} has no counterpart of {}", name_of(to_), key);
  }
}

void DialectConversion::report_lost_norms() {
  for (const LayerRule& entry : entries_)
    if (!entry.layer.weight.empty() &&
        (entry.kind == LayerRule::Kind::type ? entry.name : entry.layer.of_class) == "LayerNorm")
      report_loss(entry.where, "{} leaves norms as they are", name_of(to_));
}

void DialectConversion::report_lost_activations(const LayerRule& entry) {
  const std::string_view to = name_of(to_);
  if (!entry.layer.input_tensors.empty()) report_loss(entry.where, "{} has no keys for inputs", to);
  if (!entry.layer.output_tensors.empty()) report_loss(entry.where, "{} has no keys for outputs", to);
  if (!entry.layer.bias.empty()) report_loss(entry.where, "{} has no keys for biases", to);
}

// Keys that only this library reads, in every dialect.
static void carry_own_keys(const Config& config, DialectConversion& conversion, Dialect to, json::Value& written) {
  const auto carry = [&](const char* key, json::Value value) {
    written.set(key, std::move(value));
    conversion.losses().add({Severity::note, "option-lost", text_of("{}/{}", config.where, key),
                             text_of("only this library understands {}; other readers of {} do not", key, name_of(to)),
                             ""});
  };
  if (config.default_exclusions) carry("default_exclusions", true);
  if (config.non_finite == NonFinite::saturate) carry("non_finite", "saturate");
  if (config.indivisible_groups == IndivisibleGroups::fallback && info_of(to).has_groups)
    carry("indivisible_groups", "fallback");
  if (config.layer_types.empty()) return;
  json::Object types;
  for (const auto& [name, type] : config.layer_types) types.emplace_back(name, type);
  carry("layer_types", std::move(types));
}

ConvertedConfig convert(const Config& config, Dialect to) {
  if (config.dialect == to) return {config.source, {}};
  DialectConversion conversion(config, to);
  if (info_of(config.dialect).quantizes_norms) conversion.report_lost_norms();
  json::Value written = info_of(to).write(conversion);
  if (!info_of(to).has_spec_words && !written.is_null()) carry_own_keys(config, conversion, to, written);
  return {std::move(written), conversion.losses().take()};
}

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

std::string glob_of(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool special = c == '*' || c == '?' || c == '[';
    if (special) text += '[';
    text += c;
    if (special) text += ']';
  }
  return text;
}

std::string regex_of(std::string_view pattern) {
  if (is_regex(pattern)) return std::string(pattern.substr(3));
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const size_t close = c == '[' ? pattern.find(']', i + (pattern.substr(i + 1).starts_with("!") ? 3 : 2)) : 0;
    if (c == '*') {
      text += ".*";
    } else if (c == '?') {
      text += '.';
    } else if (c == '[' && close != std::string_view::npos) {
      text += '[';
      for (++i; i < close; ++i) {
        if (pattern[i] == '!' && text.back() == '[') {
          text += '^';
          continue;
        }
        if (pattern[i] == '\\' || pattern[i] == ']' || pattern[i] == '[' || pattern[i] == '^') text += '\\';
        text += pattern[i];
      }
      text += ']';
    } else {
      if (std::string_view("\\.[](){}+^$|").find(c) != std::string_view::npos) text += '\\';
      text += c;
    }
  }
  return text + '$';
}

}  // namespace wasmquant::config
