#include "config/dialects/dialects.h"

#include <algorithm>

#include "config/dialects/gguf_config.h"
#include "config/match/edit_distance.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

// Top-level keys that only one dialect has.
constexpr struct {
  const char* key;
  Dialect dialect;
} kOwnKeys[] = {
    {"module_qconfig_map", Dialect::aihwkit},
    {"instance_qconfig_map", Dialect::aihwkit},
    {"default_qconfig", Dialect::aihwkit},
    {"input_activation_qconfig_map", Dialect::aihwkit},
    {"excluded_modules", Dialect::aihwkit},
    {"append_default_conversions", Dialect::aihwkit},
    {"brevitas_version", Dialect::brevitas},
    {"backend", Dialect::brevitas},
    {"config_groups", Dialect::compressed_tensors},
    {"desc_act", Dialect::gptq},
    {"checkpoint_format", Dialect::gptq},
    {"zero_point", Dialect::awq},
    {"weight_block_size", Dialect::fp8},
    {"activation_scheme", Dialect::fp8},
    {"recipe", Dialect::gguf},
};

// Quark's and the Brevitas extension's configs differ in the keys of their specs and the names of their algorithms.
bool is_of_brevitas(const json::Value& block) {
  for (const char* list : {"pre_quant_opt_config", "algo_config"})
    for (const json::Value& item : block[list].items())
      if (is_brevitas_algorithm(item["name"].as_string())) return true;
  for (const char* tensor : {"weight", "input_tensors", "output_tensors", "bias"})
    for (const char* key : {"bit_width", "quant_type", "param_type"})
      if (block["global_quant_config"][tensor].find(key) != nullptr) return true;
  return false;
}

}  // namespace

std::string_view name_of(Dialect dialect) noexcept { return kDialectNames[static_cast<size_t>(dialect)]; }

std::optional<Dialect> dialect_named(std::string_view name) noexcept {
  const auto found = std::find(kDialectNames.begin(), kDialectNames.end(), name);
  if (found == kDialectNames.end()) return std::nullopt;
  return static_cast<Dialect>(found - kDialectNames.begin());
}

std::optional<Dialect> detect_dialect(const json::Value& block, const std::string& where, DiagnosticList& out) {
  for (const char* key : {"dialect", "quant_method"}) {
    const json::Value* name = block.find(key);
    if (name == nullptr || !name->is_string()) continue;
    const auto dialect = dialect_named(name->as_string());
    if (!dialect) unknown_word(name->as_string(), pointer_to(where, key), kDialectNames, out);
    return dialect;
  }
  for (const auto& [key, dialect] : kOwnKeys)
    if (block.find(key) != nullptr) return dialect;
  return is_of_brevitas(block) ? Dialect::brevitas : Dialect::quark;
}

Config parse_dialect(Dialect dialect, const json::Value& block, const std::string& where, DiagnosticList& out) {
  switch (dialect) {
    case Dialect::aihwkit:
      return parse_aihwkit(block, where, out);
    case Dialect::brevitas:
      return parse_brevitas(block, where, out);
    case Dialect::compressed_tensors:
      return parse_compressed_tensors(block, where, out);
    case Dialect::gguf:
      return parse_gguf(block, where, out);
    default:
      return parse_gptq_awq(dialect, block, where, out);
  }
}

std::optional<Dtype> integer_dtype(int64_t bits, bool is_signed, const std::string& where, DiagnosticList& out) {
  for (const DtypeInfo& row : kDtypes)
    if (row.is_integer && row.bits == bits && row.is_signed == is_signed) return row.dtype;
  out.error_in("not-implemented", where, nullptr, "use 2 to 16 bits", "this version has no integers of {} bits", bits);
  return std::nullopt;
}

void set_rows(QuantizationSpec& spec, bool per_channel) noexcept {
  spec.qscheme = per_channel ? QScheme::per_channel : QScheme::per_tensor;
  spec.observer = per_channel ? ObserverId::PerChannelMinMaxObserver : ObserverId::PerTensorMinMaxObserver;
}

bool set_block(QuantizationSpec& spec, const json::Array& block) noexcept {
  constexpr int64_t kMost = 1 << 20;
  if (block.size() != 2) return false;
  const int64_t rows = block[0].as_integer(), columns = block[1].as_integer();
  if (rows < 1 || columns < 1 || rows > kMost || columns > kMost) return false;
  spec.block_rows = static_cast<uint32_t>(rows);
  spec.block_columns = static_cast<uint32_t>(columns);
  return true;
}

void note_calibration(DiagnosticList& out, const std::string& where) {
  out.add({Severity::note, "needs-calibration", where,
           "scales of inputs and outputs come from calibration data; a run without data leaves them out", ""});
}

void warn_not_applied(DiagnosticList& out, const std::string& where, std::string_view what) {
  out.warning_in("not-applied", where, nullptr, nullptr, "not applied: {}", what);
}

}  // namespace wasmquant::config
