// Which spec a tensor gets, and why. In order of precedence:
//   exclude (names, patterns and classes) > exact layer name > first matching layer glob > default exclusions, where the config has them
//   > layer type > global (not for Embedding, LSTM, GRU and RNN)
// `resolution: field` takes each field from the first of these that has it; `replace` takes the first one whole, as
// Quark does: then an entry of kv_cache_quant_config comes before all others, and `exclude` covers what it matches, not
// everything below. Candidates are `.weight` tensors of two or more axes and expert tensors, of quantizable classes, in F32,
// F16 or BF16. A config treats Experts and Conv1D as Linear.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/match/name_match.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"
#include "runtimes/transformers/default_exclusions.h"

namespace wasmquant {

/// The kind of rule that decided.
enum class Rule : uint8_t {
  excluded,
  default_exclusion,
  layer_name,
  layer_glob,
  layer_type,
  global,
  not_a_weight,
  not_quantizable,
  no_config
};

/// Kebab-case, as JavaScript sees it.
std::string_view name_of(Rule rule) noexcept;

/// Whether the patterns of a config can be compared with the names of so many tensors in about a minute; names without
/// wildcards are looked up, and do not count. Errors: config-invalid with the numbers.
Status check_patterns(const Config& config, uint64_t tensors);

/// Why a tensor got its spec, or none.
struct Reason {
  Rule rule = Rule::no_config;
  std::string where;  // JSON pointer of the deciding key; "" if there is none
  std::string text;   // a sentence

  friend bool operator==(const Reason&, const Reason&) = default;
};

/// {rule, where, text}
json::Value to_json(const Reason& reason);

/// The spec of a weight, and why.
struct Resolved {
  Stages weight;  // empty: the tensor is not quantized
  Reason reason;
};

/// A config prepared for many lookups. Remembers which patterns matched. The config must outlive it.
class Resolver {
 public:
  /// `exclusions`: layers that a config with default_exclusions skips unless it names them, or null. Must outlive this.
  explicit Resolver(const Config& config, const transformers::DefaultExclusions* exclusions = nullptr);

  /// `quantizable_storage`: the dtype is F32, F16 or BF16.
  Resolved resolve(std::string_view tensor_name, std::span<const uint64_t> shape, bool quantizable_storage);

  /// The same where the layer's class is known: `own_type`, unless the config says another.
  Resolved resolve(std::string_view tensor_name, std::string_view own_type, std::span<const uint64_t> shape,
                   bool quantizable_storage);

  /// The same for the weight of a known layer, regardless of its name, in F32, F16 or BF16. `own_type`: the layer's
  /// class, unless the config overrides it. `operator_type`: of the node that reads it in a graph, by which `exclude` may
  /// name it, too.
  Resolved resolve_weight(std::string_view layer, std::string_view own_type, std::string_view operator_type = {});

  /// The spec of the bias of a layer of class `own_type`, as `weight`; empty without one.
  Resolved resolve_bias(std::string_view layer, std::string_view own_type) const;

  /// The class of a layer: from the config's layer_types; of norms also from an aihwkit entry of the layer; else
  /// `inferred`. Valid while the config lives.
  std::string_view type_of(std::string_view layer, std::string_view inferred) const;
  bool excludes(std::string_view layer) const;
  /// Whether an entry of kv_cache_quant_config gives the layer's outputs.
  bool is_cached(std::string_view layer) const;
  /// All four fields for a layer that is not excluded, by the config's resolution; inputs also from input_quantizers.
  LayerConfig layer_config(std::string_view layer, std::string_view layer_type) const;

  /// A layer of the model without a weight of its own, such as a head tied to the embedding: patterns may name it.
  void see_tied(std::string_view layer);

  /// After all tensors of a model: a `pattern-unused` diagnostic for every exclude entry, layer entry, layer type and
  /// input quantizer that matched no layer, with the nearest layer as a hint; `not-applied` for those that matched but
  /// could not be applied. Notes instead of warnings when the config is a preset.
  List<Diagnostic> unused_patterns() const;

 private:
  // Entries in the order of their names, for exact lookups.
  using Index = List<std::pair<std::string_view, uint32_t>>;
  struct Glob {
    uint32_t entry;
    NamePattern pattern;
  };
  struct Candidate {
    Rule rule;
    const LayerConfig* config;
    std::string_view name;   // pattern or class
    std::string_view where;  // as in LayerConfig
  };
  // What became of an input quantizer; the last that holds.
  enum class InputUse : uint8_t { no_layer, container, excluded, weight_stays, applied };
  struct Usage {                               // one an entry
    List<uint8_t> exclude, layer, layer_type;  // matched a layer
    List<uint8_t> layer_quantizable, tied;     // matched one that can be quantized; a tied head
    List<std::string_view> other_class;        // matched a layer of this class, which is not that of the entry
    List<InputUse> inputs;
    std::string norm;  // the first norm whose class is unknown
  };

  /// The entries with this name.
  static std::span<const std::pair<std::string_view, uint32_t>> named(const Index& index, std::string_view name);
  /// Index of the first exclude entry that covers the layer, or -1. Marks all that do if `usage` is given.
  int64_t find_exclude(std::string_view layer, Usage* usage) const;
  /// The first exclude entry that is a class of layers or an operator, and of this one; -1: none. Marks all if `usage` is
  /// given.
  int64_t find_excluded_class(std::string_view layer_type, std::string_view operator_type, Usage* usage) const;
  /// Decides about a weight that can be quantized.
  Resolved decide(std::string_view layer, std::string_view layer_type, std::string_view operator_type) const;
  /// The row that excludes the layer, unless one of the candidates names it; else null.
  const transformers::DefaultExclusion* default_exclusion(std::string_view layer, std::string_view layer_type,
                                                          const List<Candidate>& found) const;
  /// Exact name, first glob, type, global: those that apply, in order.
  const std::pair<std::string, LayerConfig>* cache_entry(std::string_view layer) const;
  List<Candidate> candidates(std::string_view layer, std::string_view layer_type) const;
  void count(std::string_view layer, std::string_view layer_type, bool candidate, std::string_view operator_type = {});
  void count_input(std::string_view layer, bool is_quantized);
  /// Remarks on the entries of input_quantizers that were not applied, and on norms without a class.
  void add_unused_inputs(DiagnosticList& list) const;
  void add_unknown_norms(DiagnosticList& list, const LayerConfig& layer) const;
  /// The first entry of config_.layer with exactly this name; -1: none.
  int64_t entry_named(std::string_view layer) const;
  /// Whether an entry's quantized module does not replace layers of this class.
  static bool is_of_other_class(const LayerConfig& entry, std::string_view layer_type);
  bool is_pattern(std::string_view entry) const noexcept { return !config_.exact_names && is_glob(entry); }
  std::string pointer(const Candidate& candidate) const;
  std::string exclude_pointer(size_t entry) const;
  /// How a sentence refers to a candidate.
  std::string describe(const Candidate& candidate) const;
  std::string hint_for(std::string_view pattern) const;

  const Config& config_;
  const transformers::DefaultExclusions* exclusions_;
  Index exclude_names_, layer_names_, input_names_;
  Index exclude_classes_;                                // by entry
  List<Glob> exclude_globs_, layer_globs_, type_globs_;  // type_globs_: also exact names
  List<NamePattern> cache_globs_;                        // of config_.kv_cache, also exact names
  Usage usage_;
  mutable std::optional<std::pair<std::string, int64_t>> last_excluded_;  // the layer of the last find_exclude()
  List<std::string> quantizable_layers_;
};

}  // namespace wasmquant
