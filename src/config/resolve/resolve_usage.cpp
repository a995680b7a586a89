// Which patterns of a config matched, and suggestions for the others.
#include "config/dialects/dialects.h"
#include "config/match/edit_distance.h"
#include "config/reading/object_reader.h"
#include "config/resolve/resolve.h"
#include "core/list.h"
#include "core/message.h"

namespace wasmquant {

using config::pointer_to;

Status check_patterns(const Config& config, uint64_t tensors) {
  // A regular expression takes as long as some thirty globs.
  constexpr uint64_t kRegexGlobs = 32, kMost = uint64_t{1} << 29;
  uint64_t patterns = 0, globs = 0;
  const auto add = [&](std::string_view text) {
    if (!is_glob(text)) return;
    ++patterns;
    globs += is_regex(text) ? kRegexGlobs : 1;
  };
  for (const std::string& entry : config.exclude) add(entry);
  for (const auto& [entry, layer] : config.layer) add(entry);
  for (const auto& [entry, layer] : config.kv_cache) add(entry);
  for (const auto& [entry, type] : config.layer_types) add(entry);
  if (globs == 0 || tensors <= kMost / globs) return {};
  return error_at(
      ErrorCode::config_invalid, config.where,
      "{} patterns would be compared with the names of {} tensors; the product may be {}, and {} for regular "
      "expressions. Join patterns, or list names without wildcards, which are looked up",
      patterns, tensors, kMost, kMost / kRegexGlobs);
}

void Resolver::count(std::string_view layer, std::string_view layer_type, bool candidate,
                     std::string_view operator_type) {
  find_exclude(layer, &usage_);
  if (candidate) find_excluded_class(layer_type, operator_type, &usage_);
  count_input(layer, false);
  if (layer_type == "Norm" && usage_.norm.empty()) usage_.norm = layer;
  const auto hit = [&](uint32_t entry) {
    usage_.layer[entry] = true;
    if (candidate) usage_.layer_quantizable[entry] = true;
    if (candidate && is_of_other_class(config_.layer[entry].second, layer_type)) usage_.other_class[entry] = layer_type;
  };
  for (const auto& [name, entry] : named(layer_names_, layer)) hit(entry);
  for (const Glob& glob : layer_globs_) {
    const bool known = candidate ? usage_.layer_quantizable[glob.entry] : usage_.layer[glob.entry];
    if (!known && glob.pattern.matches(layer)) hit(glob.entry);
  }
  if (!candidate) return;
  for (size_t i = 0; i < config_.layer_type.size(); ++i)
    if (config_.layer_type[i].first == layer_type) usage_.layer_type[i] = true;
  quantizable_layers_.emplace_back(layer);
}

void Resolver::see_tied(std::string_view layer) {
  find_exclude(layer, &usage_);
  for (const auto& [name, entry] : named(layer_names_, layer)) usage_.tied[entry] = true;
  for (const Glob& glob : layer_globs_)
    if (!usage_.tied[glob.entry] && glob.pattern.matches(layer)) usage_.tied[glob.entry] = true;
}

void Resolver::count_input(std::string_view layer, bool is_quantized) {
  if (input_names_.empty()) return;
  const auto raise = [&](std::string_view name, InputUse use) {
    for (const auto& [known, entry] : named(input_names_, name))
      usage_.inputs[entry] = std::max(usage_.inputs[entry], use);
  };
  for (size_t dot = layer.find('.'); dot != std::string_view::npos; dot = layer.find('.', dot + 1))
    raise(layer.substr(0, dot), InputUse::container);
  raise(layer, is_quantized ? InputUse::applied : excludes(layer) ? InputUse::excluded : InputUse::weight_stays);
}

// The nearest layer name, or a layer whose last component is near that of the pattern.
std::string Resolver::hint_for(std::string_view pattern) const {
  for (std::string_view ending : {".weight", ".bias"})
    if (pattern.ends_with(ending)) return text_of("give names of layers, without {}", ending);
  List<std::string_view> names(quantizable_layers_.begin(), quantizable_layers_.end());
  if (!is_pattern(pattern))
    if (std::string hint = did_you_mean(pattern, names); !hint.empty()) return hint;
  const std::string_view last = pattern.substr(pattern.rfind('.') + 1);
  if (is_glob(last) || is_regex(pattern)) return {};
  for (std::string_view& name : names) name = name.substr(name.rfind('.') + 1);
  const std::string_view found = nearest(last, names);
  for (size_t i = 0; i < names.size() && !found.empty(); ++i)
    if (names[i] == found) return text_of("the nearest layer is {q}", quantizable_layers_[i]);
  return {};
}

List<Diagnostic> Resolver::unused_patterns() const {
  constexpr size_t kHints = 16;  // each scans all layers
  DiagnosticList list;
  size_t hints = 0;
  const auto report = [&](const std::string& where, std::string_view pattern, std::string_view what) {
    list.add({config_.preset.empty() ? Severity::warning : Severity::note, "pattern-unused", where,
              text_of("{q}{}", pattern, what), hints++ < kHints ? hint_for(pattern) : std::string()});
  };
  constexpr std::string_view kNoLayer = " matches no layer of this model";
  for (size_t i = 0, next = 0; i < config_.exclude.size(); i = next) {
    bool is_used = false;  // by any pattern of its entry: fp8 has two of each
    for (next = i; next < config_.exclude.size() && exclude_pointer(next) == exclude_pointer(i); ++next)
      is_used = is_used || usage_.exclude[next];
    // An exclusion of a preset, or of a block by default, that some models lack is not a mistake.
    const bool is_implied = config_.default_exclusions || config::info_of(config_.dialect).leaves_head;
    if (!is_used && !(is_implied && config_.exclude[i] == "lm_head"))
      report(exclude_pointer(i), config_.exclude[i], kNoLayer);
  }

  for (size_t i = 0; i < config_.layer.size(); ++i) {
    const auto& [name, layer] = config_.layer[i];
    const std::string where = pointer({Rule::layer_name, &layer, name, layer.where});
    if (!usage_.layer_quantizable[i])
      report(where, name,
             usage_.tied[i]    ? " matches only a head that is tied to the embedding: there is no weight to quantize"
             : usage_.layer[i] ? " matches only layers that are never quantized"
                               : kNoLayer);
    else if (!usage_.other_class[i].empty())
      list.warning_in("not-applied", where, nullptr, "name the quantized module of that class",
                      "{q} looks like {}, which Quant{} does not replace", name, usage_.other_class[i], layer.of_class);
  }
  for (size_t i = 0; i < config_.layer_type.size(); ++i) {
    const auto& [name, layer] = config_.layer_type[i];
    if (usage_.layer_type[i]) continue;
    if (name == "LayerNorm" && !usage_.norm.empty())
      add_unknown_norms(list, layer);
    else if (!layer.is_implied)
      report(pointer({Rule::layer_type, &layer, name, layer.where}), name, " is the class of no layer of this model");
  }
  add_unused_inputs(list);
  return list.take();
}

// Weight files do not say which norms are of class LayerNorm.
void Resolver::add_unknown_norms(DiagnosticList& list, const LayerConfig& layer) const {
  if (layer.weight.empty()) return;
  const std::string hint =
      text_of("add \"layer_types\": {{q}: \"LayerNorm\"}, with a name or a pattern for each", usage_.norm);
  list.warning_in(
      "not-applied", pointer({Rule::layer_type, &layer, "LayerNorm", layer.where}), nullptr, hint.c_str(),
      "norms stay as they are, because weight files do not say which are of class LayerNorm; the first is {q}",
      usage_.norm);
}

void Resolver::add_unused_inputs(DiagnosticList& list) const {
  for (size_t i = 0; i < config_.input_quantizers.size(); ++i) {
    const auto& [name, stages] = config_.input_quantizers[i];
    const InputUse use = usage_.inputs[i];
    if (stages.empty() || use == InputUse::applied) continue;
    const std::string where = pointer_to(text_of("{}/input_activation_qconfig_map", config_.where), name);
    if (use == InputUse::no_layer)
      list.add({Severity::warning, "pattern-unused", where, text_of("{q} matches no layer of this model", name),
                hint_for(name)});
    else if (use == InputUse::container)
      list.warning_in("not-applied", where, nullptr, "name the layers that read this input",
                      "{q} is a module with layers inside; files only hold input scales of layers", name);
    else if (use == InputUse::excluded)
      list.warning_in("not-applied", where, nullptr, "remove the entry, or do not exclude the layer",
                      "{q} is excluded, and its input with it", name);
    else
      list.warning_in(
          "not-applied", where, nullptr, "quantize its weight, or remove the entry",
          "the weight of {q} stays as it is; files hold input scales only for layers with quantized weights", name);
  }
}

}  // namespace wasmquant
