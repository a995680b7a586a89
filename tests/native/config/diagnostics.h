// Diagnostics as text, for tables of cases.
#pragma once
#include <string>
#include <string_view>

#include "config/config_text.h"

/// "error key-unknown /a/b" lines.
inline std::string lines_of(const wasmquant::List<wasmquant::Diagnostic>& diagnostics) {
  std::string text;
  for (const wasmquant::Diagnostic& d : diagnostics) {
    if (!text.empty()) text += "\n";
    text += std::string(name_of(d.severity)) + " " + std::string(d.code.name()) + " " + d.where;
  }
  return text;
}

/// The same without the remark that a dialect's numbers are not computed.
inline std::string problems_of(std::string_view config) {
  wasmquant::List<wasmquant::Diagnostic> kept;
  for (const wasmquant::Diagnostic& d : wasmquant::config::check(config))
    if (d.severity == wasmquant::Severity::error || d.code != "not-implemented") kept.push_back(d);
  return lines_of(kept);
}
