#include "core/diagnostic.h"

#include "core/list.h"

namespace wasmquant {

std::string_view name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

json::Value to_json(const Diagnostic& diagnostic) {
  json::Object members;
  members.emplace_back("severity", name_of(diagnostic.severity));
  members.emplace_back("code", diagnostic.code);
  members.emplace_back("where", diagnostic.where);
  members.emplace_back("message", diagnostic.message);
  if (!diagnostic.hint.empty()) members.emplace_back("hint", diagnostic.hint);
  return members;
}

json::Value to_json(const List<Diagnostic>& diagnostics) {
  json::Array items;
  items.reserve(diagnostics.size());
  for (const Diagnostic& diagnostic : diagnostics) items.push_back(to_json(diagnostic));
  return items;
}

void DiagnosticList::add(Diagnostic diagnostic) {
  const Severity severity = diagnostic.severity;
  if (severity == Severity::error) ++errors_;
  if (items_.size() < kLimit) {
    items_.push_back(std::move(diagnostic));
  } else if (items_.size() == kLimit) {
    items_.push_back({severity, "too-many-problems", "", "there are more problems than this list shows",
                      "fix these and check the config again"});
  } else if (severity < items_.back().severity) {
    items_.back().severity = severity;
  }
}

void DiagnosticList::add_in(Severity severity, const char* code, const std::string& where, const char* key,
                            const char* hint, const char* message, message::Values values) {
  std::string place = where;
  if (key != nullptr) {
    place += '/';
    place += json::pointer_token(key);
  }
  add({severity, code, std::move(place), message::write(message, values), hint == nullptr ? "" : hint});
}

Diagnostic::Diagnostic() noexcept = default;
Diagnostic::Diagnostic(Severity severity_, std::string_view code_, std::string where_, std::string message_,
                       std::string_view hint_)
    : severity(severity_), code(code_), where(std::move(where_)), message(std::move(message_)), hint(hint_) {}
Diagnostic::Diagnostic(const Diagnostic& other) = default;
Diagnostic::Diagnostic(Diagnostic&& other) noexcept = default;
Diagnostic& Diagnostic::operator=(const Diagnostic& other) = default;
Diagnostic& Diagnostic::operator=(Diagnostic&& other) noexcept = default;
Diagnostic::~Diagnostic() = default;

void DiagnosticList::error(const char* code, const std::string& where, const char* message, const char* hint) {
  add({Severity::error, code, where, message, hint});
}
void DiagnosticList::error(const char* code, const std::string& where, const std::string& message, const char* hint) {
  add({Severity::error, code, where, message, hint});
}
void DiagnosticList::error(const char* code, const std::string& where, const std::string& message,
                           const std::string& hint) {
  add({Severity::error, code, where, message, hint});
}
void DiagnosticList::warning(const char* code, const std::string& where, const char* message, const char* hint) {
  add({Severity::warning, code, where, message, hint});
}
void DiagnosticList::warning(const char* code, const std::string& where, const std::string& message, const char* hint) {
  add({Severity::warning, code, where, message, hint});
}

}  // namespace wasmquant
