// One dialect's config said in another's words, and the list of what they cannot say (spec aihwkit-brevitas 4).
#pragma once
#include <string>
#include <string_view>

#include "config/dialects/dialects.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant::config {

struct Converted {
  json::Value config;
  List<Diagnostic> losses;  // each a warning with code "lost", at what was lost in the config that was given
};

/// To its own dialect: the config as it was given, with standard values and current key names filled in.
Converted convert(const Config& config, Dialect to);

/// What is done to some layers, whole: under `resolution: field`, with what falls through to it.
struct Entry {
  enum class Kind : uint8_t { global, type, name, pattern };
  Kind kind;
  std::string name;  // a class, an exact name or a pattern
  LayerConfig layer;
  std::string where;
};

/// A conversion under way: the parts of a config, and what was lost so far.
class Conversion {
 public:
  Conversion(const Config& config, Dialect to);

  const Config& config() const noexcept { return config_; }
  /// Global last, others in the config's order.
  const List<Entry>& entries() const noexcept { return entries_; }
  /// Of exclude entries: pointers as diagnostics have them.
  std::string exclude_where(size_t entry) const;
  std::string weight_where(const Entry& entry) const;

  /// A loss at `where`, said once; the message has gaps (core/message.h).
  template <class... T>
  void lose(const std::string& where, const char* pattern, const T&... values) {
    const void* const at[] = {&values..., nullptr};
    add_loss(where, pattern, {at, message::kKinds<message::kind_of<T>()...>});
  }
  /// Whether there is one spec, and not several steps, which other dialects than Quark's have no words for.
  bool is_one_step(const Stages& stages, const std::string& where);
  /// One loss for all numbers of a spec that come out otherwise there.
  void compare_numbers(const QuantizationSpec& have, const QuantizationSpec& get, const std::string& where);
  /// Losses for what only Quark's specs say: rounding, scale types, fractional zero points, another axis than 0.
  void lose_choices(const QuantizationSpec& spec, const std::string& where);
  /// Losses for algorithms, the kv cache and all else that is carried beside the entries; `understood` is not lost.
  void lose_carried(std::string_view understood);
  void lose_activations(const Entry& entry);

  DiagnosticList& losses() noexcept { return losses_; }

 private:
  void add_loss(const std::string& where, const char* message, message::Values values);

  const Config& config_;
  Dialect to_;
  List<Entry> entries_;
  DiagnosticList losses_;
};

/// Whether the range is the best of several by the error it gives.
bool is_search(const QuantizationSpec& spec) noexcept;
/// Whether it is the least and the largest value.
bool is_min_max(const QuantizationSpec& spec) noexcept;

json::Value write_aihwkit(Conversion& conversion);
json::Value write_brevitas(Conversion& conversion);
json::Value write_compressed_tensors(Conversion& conversion);
/// gptq or awq
json::Value write_uniform(Conversion& conversion, Dialect to);
/// A glob of this library as a regular expression that matches whole names.
std::string regex_of(std::string_view pattern);
/// A name as a pattern that matches nothing else.
std::string glob_of(std::string_view name);

}  // namespace wasmquant::config
