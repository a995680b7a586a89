#include "config/dialects/dialects.h"

#include <algorithm>

#include "config/dialects/gguf_config.h"
#include "config/match/edit_distance.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

constexpr const DialectInfo* kDialects[] = {
#define WASMQUANT_DIALECT(id, name) &id##_dialect,
#include "tools/tools.def"
};

bool has_own_key(const DialectInfo& dialect, const json::Value& block) {
  for (const auto& [key, value] : block.members())
    if (index_in(key, dialect.own_keys) >= 0) return true;
  return false;
}

}  // namespace

const DialectInfo& info_of(Dialect dialect) noexcept { return *kDialects[static_cast<size_t>(dialect)]; }

std::span<const std::string_view> written_dialects() noexcept {
  const auto first = std::find_if(std::begin(kDialects), std::end(kDialects),
                                  [](const DialectInfo* dialect) { return dialect->write == nullptr; });
  return std::span(kDialectNames).first(static_cast<size_t>(first - kDialects));
}

std::string_view name_of(Dialect dialect) noexcept { return kDialectNames[static_cast<size_t>(dialect)]; }

std::optional<Dialect> dialect_named(std::string_view name) noexcept {
  const auto found = std::find(std::begin(kDialectNames), std::end(kDialectNames), name);
  if (found == std::end(kDialectNames)) return std::nullopt;
  return static_cast<Dialect>(found - std::begin(kDialectNames));
}

std::optional<Dialect> detect_dialect(const json::Value& block, const std::string& where, DiagnosticList& out) {
  for (const char* key : {"dialect", "quant_method"}) {
    const json::Value* name = block.find(key);
    if (name == nullptr || !name->is_string()) continue;
    const auto dialect = dialect_named(name->as_string());
    if (!dialect) unknown_word(name->as_string(), pointer_to(where, key), kDialectNames, out);
    return dialect;
  }
  constexpr size_t kCount = std::size(kDialects);
  for (size_t i = 0; i < kCount; ++i)
    if (has_own_key(*kDialects[i], block)) return static_cast<Dialect>(i);
  for (size_t i = 0; i < kCount; ++i)
    if (kDialects[i]->recognises != nullptr && kDialects[i]->recognises(block)) return static_cast<Dialect>(i);
  return Dialect();
}

std::optional<Dtype> integer_dtype(int64_t bits, bool is_signed, const std::string& where, DiagnosticList& out) {
  for (const DtypeInfo& row : kDtypes)
    if (row.is_integer && row.bits == bits && row.is_signed == is_signed) return row.dtype;
  out.error_in("not-implemented", where, nullptr, is_signed ? "use 2 to 16 bits, or 32" : "use 2 to 16 bits",
               "this version has no integers of {} bits", bits);
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
