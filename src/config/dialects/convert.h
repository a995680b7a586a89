// Converts a config to another dialect and lists what that dialect cannot express (spec aihwkit-brevitas 4).
#pragma once
#include <string>
#include <string_view>

#include "config/dialects/dialects.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant::config {

/// A converted config and its losses.
struct ConvertedConfig {
  json::Value config;
  List<Diagnostic> losses;  // warnings with code "option-lost", located in the source config
};

/// To its own dialect: the config with defaults filled in and current key names.
ConvertedConfig convert(const Config& config, Dialect to);

/// The complete config of some layers: with `resolution: field`, including the fields that fall through.
struct LayerRule {
  enum class Kind : uint8_t { global, type, name, pattern };
  Kind kind;
  std::string name;  // a class, an exact name or a pattern
  LayerConfig layer;
  std::string where;
};

/// A conversion in progress: the parts of a config, and the losses so far.
class DialectConversion {
 public:
  DialectConversion(const Config& config, Dialect to);

  const Config& config() const noexcept { return config_; }
  /// Global last, others in the config's order.
  const List<LayerRule>& entries() const noexcept { return entries_; }
  /// JSON pointer of an exclude entry, as in diagnostics.
  std::string exclude_where(size_t entry) const;
  std::string weight_where(const LayerRule& entry) const;

  /// Reports a loss at `where` once; the message has placeholders (core/message.h).
  template <class... T>
  void report_loss(const std::string& where, const char* pattern, const T&... values) {
    const void* const at[] = {&values..., nullptr};
    add_loss(where, pattern, {at, message::kKinds<message::kind_of<T>()...>});
  }
  /// False, and a loss, if there are several stages, which only Quark's dialect can express.
  bool require_single_stage(const Stages& stages, const std::string& where);
  /// One loss for all numbers of a spec that differ.
  void compare_numbers(const QuantizationSpec& have, const QuantizationSpec& get, const std::string& where);
  /// Losses for features of Quark's specs only: rounding, scale types, fractional zero points, axes other than 0.
  void report_lost_choices(const QuantizationSpec& spec, const std::string& where);
  /// Losses for algorithms, the kv cache and everything else outside the entries; `understood` is not lost.
  void report_lost_options(std::string_view understood);
  void report_lost_activations(const LayerRule& entry);
  /// Losses for entries of norms, whose weights only aihwkit quantizes.
  void report_lost_norms();

  DiagnosticList& losses() noexcept { return losses_; }

 private:
  void add_loss(const std::string& where, const char* message, message::Values values);

  const Config& config_;
  Dialect to_;
  List<LayerRule> entries_;
  DiagnosticList losses_{false};  // each at its place
};

/// Whether the spec searches the range with the least error.
bool is_search(const QuantizationSpec& spec) noexcept;
/// Whether the range is the minimum and maximum.
bool is_min_max(const QuantizationSpec& spec) noexcept;

/// An exclude entry as a regular expression: everything below an excluded module is excluded too, unless the config says that
/// only what matches is.
std::string excluded_regex(const Config& config, std::string_view entry);
/// The remark that groups of whole rows become channels.
void note_whole_rows(DialectConversion& conversion, const QuantizationSpec& spec, const std::string& where);
/// A glob of this library as a regular expression that matches whole names.
std::string regex_of(std::string_view pattern);
/// A pattern that matches exactly this name.
std::string glob_of(std::string_view name);

}  // namespace wasmquant::config
