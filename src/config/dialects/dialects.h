// The config dialects other than Quark's. Each has a parser from its JSON to a Config, and a writer back. A parser
// fills in defaults, keeps the original in Config::source, and translates it to the common structs: entries, specs, and
// numeric rules (tools/aihwkit/aihwkit_grid.h, tools/brevitas/brevitas_grid.h).
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"
#include "core/result.h"

namespace wasmquant::config {

/// In the order of Dialect. The first kWrittenDialects are also written, the others only read.
inline constexpr std::array<std::string_view, 8> kDialectNames = {"quark", "brevitas", "aihwkit", "compressed-tensors",
                                                                  "gptq",  "awq",      "fp8",     "gguf"};
inline constexpr size_t kWrittenDialects = 6;
/// "quark", "brevitas", ...: as `dialect` and `quant_method` spell it.
std::string_view name_of(Dialect dialect) noexcept;
/// The reverse of name_of.
std::optional<Dialect> dialect_named(std::string_view name) noexcept;

/// The dialect of a config: named by `dialect` or `quant_method`, else recognised by its keys, else Quark's. Reports an
/// unknown name and returns nullopt.
std::optional<Dialect> detect_dialect(const json::Value& block, const std::string& where, DiagnosticList& out);

/// `where`: pointer of the config in its text.
Config parse_dialect(Dialect dialect, const json::Value& block, const std::string& where, DiagnosticList& out);

/// The keys of a config and of everything inside it.
const Keys& aihwkit_keys() noexcept;
/// Of `range_estimator_params`, by estimator, in the order of kRangeEstimators; allminmax has none.
std::span<const Keys> aihwkit_parameter_keys() noexcept;
const Keys& brevitas_keys() noexcept;
const Keys& compressed_tensors_keys() noexcept;
/// Of gptq, awq or fp8.
const Keys& uniform_keys(Dialect dialect) noexcept;
/// Whether the Brevitas extension has an algorithm of this name; Quark's have others.
bool is_brevitas_algorithm(std::string_view name) noexcept;
/// IBM aihwkit's QuantizationMap (spec 1).
Config parse_aihwkit(const json::Value& value, const std::string& where, DiagnosticList& out);
/// The Config of Quark's Brevitas extension (spec 2).
Config parse_brevitas(const json::Value& value, const std::string& where, DiagnosticList& out);
/// The quantization_config of a compressed-tensors model.
Config parse_compressed_tensors(const json::Value& value, const std::string& where, DiagnosticList& out);
/// The quantization_config of a GPTQ, AWQ or fp8 model: one spec for all layers, and exceptions.
Config parse_gptq_awq(Dialect dialect, const json::Value& value, const std::string& where, DiagnosticList& out);

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
