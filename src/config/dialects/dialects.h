// The config dialects. Each has a parser from its JSON to a Config, and a writer back. A parser
// fills in defaults, keeps the original in Config::source, and translates it to the common structs: entries, specs, and
// numeric rules (tools/aihwkit/aihwkit_grid.h, tools/brevitas/brevitas_grid.h).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant::config {

/// An algorithm in the words of tables/algorithms.def.
struct TranslatedAlgorithm {
  json::Value value;        // {"name": ..., options}
  bool is_implied = false;  // part of another one: finding nothing to change is not an error
};

/// The keys of an algorithm that a dialect has under a name of its own.
struct AlgorithmKeys {
  std::string_view name;
  bool before;  // of pre_quant_opt_config, else of algo_config
  Keys keys;
};

class DialectConversion;

/// A dialect: what the room of its tool says of its configs.
struct DialectInfo {
  const Keys& (*keys)() noexcept;  // of a config and of everything inside it
  /// `where`: pointer of the config in its text.
  Config (*read)(const json::Value& block, const std::string& where, DiagnosticList& out);
  json::Value (*write)(DialectConversion& conversion) = nullptr;  // null: only read
  const char* own_keys = "";                                      // top-level keys that no other dialect has: "a|b"
  bool (*recognises)(const json::Value& block) = nullptr;         // by more than such keys
  // Algorithms under names of its own, and what they are in those of tables/algorithms.def.
  std::span<const AlgorithmKeys> (*algorithms)() noexcept = nullptr;
  void (*translate)(const json::Value& algorithm, List<TranslatedAlgorithm>& out) = nullptr;
  std::span<const Keys> (*parameters)() noexcept = nullptr;  // of range_estimator_params, by estimator
  bool has_named_algorithms = false;                         // those of tables/algorithms.def
  bool has_spec_words = false;     // keys of specs have this library's words (config/spec/vocabulary.h)
  bool maps_entries = false;       // entries are in global_quant_config, layer_type_quant_config, layer_quant_config
  bool leaves_head = false;        // a block that quantizes every layer but the head, without saying so
  bool has_groups = true;          // elements of a row may share scales in groups
  bool has_scale_formats = false;  // blocks may have scales of 8 bits
  bool quantizes_norms = false;
  bool has_transposed_axes = false;  // of transposed convolutions, channels are on axis 1; those of three axes are left
};

#define WASMQUANT_DIALECT(id, name) extern const DialectInfo id##_dialect;
#include "tools/tools.def"

/// In the order of Dialect.
inline constexpr std::string_view kDialectNames[] = {
#define WASMQUANT_DIALECT(id, name) name,
#include "tools/tools.def"
};
/// What is known of a dialect.
const DialectInfo& info_of(Dialect dialect) noexcept;
/// The names of those that can be written: the first of kDialectNames.
std::span<const std::string_view> written_dialects() noexcept;
/// "quark", "brevitas", ...: as `dialect` and `quant_method` spell it.
std::string_view name_of(Dialect dialect) noexcept;
/// The reverse of name_of.
std::optional<Dialect> dialect_named(std::string_view name) noexcept;

/// The dialect of a config: named by `dialect` or `quant_method`, else recognised by its keys, else the first. Reports an
/// unknown name and returns nullopt.
std::optional<Dialect> detect_dialect(const json::Value& block, const std::string& where, DiagnosticList& out);

/// The signed or unsigned integer dtype with that many bits; if there is none, adds a diagnostic at `where`.
std::optional<Dtype> integer_dtype(int64_t bits, bool is_signed, const std::string& where, DiagnosticList& out);
/// per_tensor, or per_channel along axis 0, with its min-max observer.
void set_rows(QuantizationSpec& spec, bool per_channel) noexcept;
/// Sets [rows, columns] of blocks that share a scale; false if `block` is not such a pair.
bool set_block(QuantizationSpec& spec, const json::Array& block) noexcept;
/// The remark that static inputs or outputs of a config need data.
void note_calibration(DiagnosticList& out, const std::string& where);
/// "not-applied": parsed and kept, but without effect in this version.
void warn_not_applied(DiagnosticList& out, const std::string& where, std::string_view what);

}  // namespace wasmquant::config
