// The candidates for a tensor in order of precedence, the merge of their fields, and the reason in words.
#include "config/resolve/resolve.h"

#include "config/dialects/dialects.h"
#include "config/match/layer_type.h"
#include "config/reading/object_reader.h"
#include "core/message.h"
#include "core/order.h"
#include "families/expert_weights.h"
#include "numeric/dtype.h"

namespace wasmquant {

using config::pointer_to;

namespace {

template <class Index>
Index by_name(const Index& index) {
  Index sorted;
  const auto name_of = [&](uint32_t i) { return index[i].first; };
  for (uint32_t i : sorted_by_name(index.size(), name_of)) sorted.push_back(index[i]);
  return sorted;
}

std::string_view why(Rule rule) {
  switch (rule) {
    case Rule::layer_name:
      return " names this layer";
    case Rule::layer_glob:
      return " is the first that matches this layer";
    case Rule::layer_type:
      return " covers layers of this class";
    default:
      return "";
  }
}

std::string not_quantizable_text(std::string_view layer_type, std::span<const uint64_t> shape) {
  if (layer_type == "Norm" || layer_type == "LayerNorm") return "norms are never quantized";
  if (shape.size() < 2) return "weights with fewer than two axes are never quantized";
  return text_of("weights with {} axes belong to no layer class that can be quantized", shape.size());
}

// Classes that a global config skips.
bool needs_naming(std::string_view type) {
  for (const std::string_view named : {"Embedding", "EmbeddingBag", "LSTM", "GRU", "RNN"})
    if (type == named) return true;
  return false;
}

// A config's name for the class: expert matrices and GPT-2's transposed ones are linear layers.
std::string_view class_of(std::string_view layer_type) {
  return layer_type == kExperts || layer_type == kConv1D ? "Linear" : layer_type;
}

// Names of classes and operators begin with a capital letter: Conv1d, MatMul.
bool may_be_class(std::string_view entry) {
  return !entry.empty() && entry[0] >= 'A' && entry[0] <= 'Z' && entry.find_first_of(".*?[") == entry.npos;
}

// Whether `name` means this class of layers. Conv and ConvTranspose have any number of dimensions.
bool is_class(std::string_view name, std::string_view layer_type) {
  if (layer_type.empty()) return false;
  if (name == layer_type || name == class_of(layer_type)) return true;
  const bool has_dimensions = layer_type.starts_with("Conv") && layer_type.ends_with("d");
  return has_dimensions && layer_type.substr(0, layer_type.size() - 2) == name;
}

Resolved kept(Rule rule, std::string where, std::string text) {
  return {{}, {rule, std::move(where), std::move(text)}};
}

}  // namespace

std::string_view name_of(Rule rule) noexcept {
  switch (rule) {
    case Rule::excluded:
      return "excluded";
    case Rule::default_exclusion:
      return "default-exclusion";
    case Rule::layer_name:
      return "layer-name";
    case Rule::layer_glob:
      return "layer-glob";
    case Rule::layer_type:
      return "layer-type";
    case Rule::global:
      return "global";
    case Rule::not_a_weight:
      return "not-a-weight";
    case Rule::not_quantizable:
      return "not-quantizable";
    case Rule::no_config:
      return "no-config";
  }
  return "no-config";
}

json::Value to_json(const Reason& reason) {
  json::Object members;
  members.emplace_back("rule", name_of(reason.rule));
  members.emplace_back("where", reason.where);
  members.emplace_back("text", reason.text);
  return members;
}

Resolver::Resolver(const Config& config, const transformers::DefaultExclusions* exclusions)
    : config_(config), exclusions_(config.default_exclusions ? exclusions : nullptr) {
  for (uint32_t i = 0; i < config.exclude.size(); ++i) {
    const std::string& entry = config.exclude[i];
    exclude_names_.emplace_back(entry, i);
    if (may_be_class(entry)) exclude_classes_.emplace_back(entry, i);
    if (!is_pattern(entry)) continue;
    exclude_globs_.push_back({i, NamePattern(entry)});
    if (config.excludes_below() && !entry.ends_with(".*") && !is_regex(entry))
      exclude_globs_.push_back({i, NamePattern(text_of("{}.*", entry))});
  }
  for (uint32_t i = 0; i < config.layer.size(); ++i) {
    const std::string& entry = config.layer[i].first;
    layer_names_.emplace_back(entry, i);
    if (is_pattern(entry)) layer_globs_.push_back({i, NamePattern(entry)});
  }
  for (uint32_t i = 0; i < config.input_quantizers.size(); ++i)
    input_names_.emplace_back(config.input_quantizers[i].first, i);
  for (const auto& [name, layer] : config.kv_cache) cache_globs_.emplace_back(name);
  for (uint32_t i = 0; i < config.layer_types.size(); ++i)
    type_globs_.push_back({i, NamePattern(config.layer_types[i].first)});
  exclude_names_ = by_name(exclude_names_);
  layer_names_ = by_name(layer_names_);
  input_names_ = by_name(input_names_);
  usage_.exclude.resize(config.exclude.size());
  usage_.layer.resize(config.layer.size());
  usage_.layer_quantizable.resize(config.layer.size());
  usage_.tied.resize(config.layer.size());
  usage_.layer_type.resize(config.layer_type.size());
  usage_.other_class.resize(config.layer.size());
  usage_.inputs.resize(config.input_quantizers.size());
}

std::span<const std::pair<std::string_view, uint32_t>> Resolver::named(const Index& index, std::string_view name) {
  size_t begin = 0, end = index.size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (index[middle].first < name)
      begin = middle + 1;
    else
      end = middle;
  }
  while (end < index.size() && index[end].first == name) ++end;
  return std::span(index).subspan(begin, end - begin);
}

// A layer is asked for several times in a row, with all patterns each time.
int64_t Resolver::find_exclude(std::string_view layer, Usage* usage) const {
  if (usage == nullptr && last_excluded_ && last_excluded_->first == layer) return last_excluded_->second;
  int64_t first = -1;
  const auto hit = [&](uint32_t entry) {
    if (first < 0 || entry < first) first = entry;
    if (usage != nullptr) usage->exclude[entry] = true;
  };
  for (const auto& [name, entry] : named(exclude_names_, layer)) hit(entry);
  const size_t first_dot = config_.excludes_below() ? layer.find('.') : std::string_view::npos;
  for (size_t dot = first_dot; dot != std::string_view::npos; dot = layer.find('.', dot + 1)) {
    for (const auto& [name, entry] : named(exclude_names_, layer.substr(0, dot)))
      if (!is_pattern(name)) hit(entry);
  }
  if (config_.exact_names)  // the root of the model is called ""
    for (const auto& [name, entry] : named(exclude_names_, "")) hit(entry);
  for (const Glob& glob : exclude_globs_)
    if (glob.pattern.matches(layer)) hit(glob.entry);
  last_excluded_.emplace(layer, first);
  return first;
}

int64_t Resolver::find_excluded_class(std::string_view layer_type, std::string_view operator_type, Usage* usage) const {
  int64_t first = -1;
  for (const auto& [name, entry] : exclude_classes_) {
    if (!is_class(name, layer_type) && (operator_type.empty() || name != operator_type)) continue;
    if (usage != nullptr) usage->exclude[entry] = true;
    if (first < 0) first = entry;
  }
  return first;
}

std::string_view Resolver::type_of(std::string_view layer, std::string_view inferred) const {
  for (const Glob& glob : type_globs_)
    if (glob.pattern.matches(layer)) return config_.layer_types[glob.entry].second;
  if (config::info_of(config_.dialect).quantizes_norms && (inferred == "Norm" || inferred.empty()))
    if (const int64_t entry = entry_named(layer); entry >= 0)
      if (const std::string& own = config_.layer[static_cast<size_t>(entry)].second.of_class; own == "LayerNorm")
        return own;
  return inferred;
}

int64_t Resolver::entry_named(std::string_view layer) const {
  const auto entries = named(layer_names_, layer);
  return entries.empty() ? -1 : int64_t{entries[0].second};
}

bool Resolver::is_of_other_class(const LayerConfig& entry, std::string_view layer_type) {
  return !entry.of_class.empty() && entry.of_class != class_of(layer_type);
}

bool Resolver::excludes(std::string_view layer) const { return find_exclude(layer, nullptr) >= 0; }

// The last one that matches.
const std::pair<std::string, LayerConfig>* Resolver::cache_entry(std::string_view layer) const {
  for (size_t i = cache_globs_.size(); i-- > 0;)
    if (cache_globs_[i].matches(layer)) return &config_.kv_cache[i];
  return nullptr;
}

bool Resolver::is_cached(std::string_view layer) const {
  const auto* const cached = cache_entry(layer);
  return cached != nullptr && !cached->second.output_tensors.empty();
}

List<Resolver::Candidate> Resolver::candidates(std::string_view layer, std::string_view layer_type) const {
  List<Candidate> found;
  const auto add = [&](Rule rule, const LayerConfig& config, std::string_view name) {
    found.push_back({rule, &config, name, config.where});
  };
  if (config_.exact_names) {
    static const LayerConfig kNothing;
    for (size_t end = 0; end < layer.size(); end = layer.find('.', end + 1)) {
      const auto entries = named(layer_names_, layer.substr(0, end));
      if (entries.empty()) continue;
      const auto& [name, config] = config_.layer[entries[0].second];
      found.push_back({Rule::layer_name, &kNothing, name, config.where});
      return found;
    }
  }
  const auto* const cached = cache_entry(layer);
  if (cached != nullptr && config_.resolution == Resolution::replace) {
    add(is_pattern(cached->first) ? Rule::layer_glob : Rule::layer_name, cached->second, cached->first);
    return found;
  }
  const std::pair<std::string, LayerConfig>* exact = nullptr;
  if (const int64_t entry = entry_named(layer); entry >= 0) exact = &config_.layer[static_cast<size_t>(entry)];
  if (exact != nullptr) add(Rule::layer_name, exact->second, exact->first);
  for (const Glob& glob : layer_globs_) {
    const auto& entry = config_.layer[glob.entry];
    if (&entry == exact || !glob.pattern.matches(layer)) continue;
    add(Rule::layer_glob, entry.second, entry.first);
    break;
  }
  for (const auto& [type, config] : config_.layer_type) {
    if (type != class_of(layer_type)) continue;
    add(Rule::layer_type, config, type);
    break;
  }
  const bool has_global = config::info_of(config_.dialect).maps_entries || !(config_.global == LayerConfig());
  const bool is_passed_over = config::info_of(config_.dialect).has_transposed_axes &&
                              (layer_type == "Conv3d" || layer_type == "ConvTranspose3d");
  const bool is_left = needs_naming(layer_type) && config_.whole_cast() == nullptr;
  if (has_global && !is_left && !is_passed_over) add(Rule::global, config_.global, "");
  return found;
}

LayerConfig Resolver::layer_config(std::string_view layer, std::string_view layer_type) const {
  const List<Candidate> found = candidates(layer, layer_type);
  LayerConfig merged;
  for (const Candidate& candidate : found) {
    const LayerConfig& next = *candidate.config;
    if (merged.weight.empty()) merged.weight = next.weight;
    if (merged.bias.empty()) merged.bias = next.bias;
    if (merged.input_tensors.empty()) merged.input_tensors = next.input_tensors;
    if (merged.output_tensors.empty()) merged.output_tensors = next.output_tensors;
    if (config_.resolution == Resolution::replace) break;
  }
  if (const auto* const cached = cache_entry(layer); cached != nullptr && !cached->second.output_tensors.empty())
    merged.output_tensors = cached->second.output_tensors;
  if (const auto inputs = named(input_names_, layer); !inputs.empty() && !merged.weight.empty())
    merged.input_tensors = config_.input_quantizers[inputs[0].second].second;
  return merged;
}

std::string Resolver::pointer(const Candidate& candidate) const {
  if (!candidate.where.empty() || !config::info_of(config_.dialect).maps_entries) return std::string(candidate.where);
  if (candidate.rule == Rule::global) return text_of("{}/global_quant_config", config_.where);
  return pointer_to(text_of("{}{}", config_.where,
                            candidate.rule == Rule::layer_type ? "/layer_type_quant_config" : "/layer_quant_config"),
                    candidate.name);
}

std::string Resolver::exclude_pointer(size_t entry) const {
  if (entry < config_.exclude_where.size()) return config_.exclude_where[entry];
  return text_of("{}/exclude/{}", config_.where, entry);
}

// "entry "lm_head" of layer_quant_config", from the first key of its pointer.
std::string Resolver::describe(const Candidate& candidate) const {
  const std::string where = pointer(candidate);
  const size_t begin = where.find_first_not_of('/', config_.where.size());
  const std::string key =
      begin == std::string::npos ? "the config" : where.substr(begin, where.find('/', begin) - begin);
  if (candidate.rule == Rule::global) return key;
  return text_of("{} {q} of {}", candidate.rule == Rule::layer_glob ? "pattern" : "entry", candidate.name, key);
}

Resolved Resolver::resolve(std::string_view tensor_name, std::span<const uint64_t> shape, bool quantizable_storage) {
  return resolve(tensor_name, layer_type_of(tensor_name, shape), shape, quantizable_storage);
}

Resolved Resolver::resolve(std::string_view tensor_name, std::string_view own_type, std::span<const uint64_t> shape,
                           bool quantizable_storage) {
  const auto [layer, role] = layer_name_of(tensor_name);
  if (role != TensorRole::weight && own_type != kExperts) {
    count(layer, "", false);
    if (role == TensorRole::bias) return kept(Rule::not_a_weight, {}, "biases stay as they are");
    return kept(Rule::not_a_weight, {},
                families::are_experts_in_rows(tensor_name, shape.size())
                    ? "these experts are rows of one matrix, and no runtime reads single quantized experts from it"
                    : "only tensors called *.weight are quantized");
  }
  const std::string_view type = type_of(layer, own_type);
  const bool quantizable =
      is_quantizable_type(type) || (type == "LayerNorm" && config::info_of(config_.dialect).quantizes_norms);
  count(layer, type, quantizable && quantizable_storage);
  if (!quantizable) return kept(Rule::not_quantizable, {}, not_quantizable_text(type, shape));
  if (!quantizable_storage)
    return kept(Rule::not_quantizable, {}, "only weights in floats can be quantized (F64, F32, F16, BF16, F8, F4)");
  Resolved resolved = decide(layer, type, {});
  count_input(layer, !resolved.weight.empty());
  return resolved;
}

Resolved Resolver::resolve_weight(std::string_view layer, std::string_view own_type, std::string_view operator_type) {
  const std::string_view type = type_of(layer, own_type);
  const bool quantizable = is_quantizable_type(type);
  count(layer, type, quantizable, operator_type);
  if (!quantizable) return kept(Rule::not_quantizable, {}, text_of("layers of class {} are never quantized", type));
  Resolved resolved = decide(layer, type, operator_type);
  count_input(layer, !resolved.weight.empty());
  return resolved;
}

Resolved Resolver::resolve_bias(std::string_view layer, std::string_view own_type) const {
  const std::string_view type = type_of(layer, own_type);
  if (!is_quantizable_type(type) || find_exclude(layer, nullptr) >= 0 || find_excluded_class(type, {}, nullptr) >= 0)
    return {};
  const List<Candidate> found = candidates(layer, type);
  if (default_exclusion(layer, type, found) != nullptr) return {};
  for (const Candidate& deciding : found) {
    if (!deciding.config->bias.empty()) {
      Resolved resolved = kept(deciding.rule, text_of("{}/bias", pointer(deciding)),
                               text_of("{} has a spec for biases", describe(deciding)));
      resolved.weight = deciding.config->bias;
      return resolved;
    }
    if (config_.resolution == Resolution::replace) break;
  }
  return {};
}

const transformers::DefaultExclusion* Resolver::default_exclusion(std::string_view layer, std::string_view layer_type,
                                                                  const List<Candidate>& found) const {
  const transformers::DefaultExclusion* row = exclusions_ == nullptr ? nullptr : exclusions_->find(layer, layer_type);
  if (row == nullptr) return nullptr;
  bool is_first = true;
  for (const Candidate& candidate : found) {
    if (candidate.config->weight.empty()) continue;
    // Whole models are cast to 16 bits.
    if (std::exchange(is_first, false) && info_of(candidate.config->weight.front().dtype).is_plain_cast())
      return nullptr;
    const bool names =
        candidate.rule == Rule::layer_name ||
        (candidate.rule == Rule::layer_glob && transformers::names_row(*row, candidate.name)) ||
        (candidate.rule == Rule::layer_type && row->match == transformers::DefaultExclusion::Match::type);
    if (names) return nullptr;
  }
  return row;
}

Resolved Resolver::decide(std::string_view layer, std::string_view type, std::string_view operator_type) const {
  if (const int64_t entry = find_exclude(layer, nullptr); entry >= 0) {
    const std::string& name = config_.exclude[static_cast<size_t>(entry)];
    return kept(Rule::excluded, exclude_pointer(static_cast<size_t>(entry)),
                text_of("excluded by {q}{}", name,
                        !is_pattern(name) && name != layer ? ", which covers everything below it" : ""));
  }
  if (const int64_t entry = find_excluded_class(type, operator_type, nullptr); entry >= 0) {
    const std::string& name = config_.exclude[static_cast<size_t>(entry)];
    return kept(Rule::excluded, exclude_pointer(static_cast<size_t>(entry)),
                text_of("excluded by {q}, which is {}", name,
                        is_class(name, type) ? "its class" : "the operator that reads it"));
  }

  const List<Candidate> found = candidates(layer, type);
  if (const transformers::DefaultExclusion* row = default_exclusion(layer, type, found))
    return kept(Rule::default_exclusion, text_of("{}/default_exclusions", config_.where),
                text_of("default exclusion {q}: {}", row->id, row->text));
  std::string passed_over;
  for (const Candidate& deciding : found) {
    const std::string name = describe(deciding);
    if (is_of_other_class(*deciding.config, type))
      return kept(deciding.rule, pointer(deciding),
                  text_of("{} replaces a {}, and this layer looks like {}", name, deciding.config->of_class, type));
    if (!deciding.config->weight.empty()) {
      Resolved resolved = kept(deciding.rule, text_of("{}/{}", pointer(deciding), config_.weight_key),
                               passed_over.empty() ? text_of("{}{}", name, why(deciding.rule))
                                                   : text_of("{} no weight spec, so {} decides", passed_over, name));
      resolved.weight = deciding.config->weight;
      if (config::info_of(config_.dialect).has_transposed_axes && type.starts_with("ConvTranspose"))
        for (QuantizationSpec& spec : resolved.weight)
          if (spec.qscheme == QScheme::per_channel) spec.ch_axis = 1;
      return resolved;
    }
    if (config_.resolution == Resolution::replace)
      return kept(deciding.rule, pointer(deciding),
                  text_of("{} decides, and it has no weight spec{}", name,
                          config::info_of(config_.dialect).maps_entries ? " (resolution is \"replace\")" : ""));
    if (deciding.rule == Rule::global) continue;
    passed_over = passed_over.empty() ? text_of("{} has", name)
                                      : text_of("{} and {} have", passed_over.substr(0, passed_over.rfind(' ')), name);
  }
  return kept(Rule::no_config, {},
              needs_naming(type) && config::info_of(config_.dialect).maps_entries
                  ? text_of("global_quant_config is not for {}: name the layer in layer_quant_config, "
                            "or {} in layer_type_quant_config, to quantize it",
                            type == "Embedding" ? "embeddings" : type, type)
                  : std::string("no config with a weight spec applies to this layer"));
}

}  // namespace wasmquant
