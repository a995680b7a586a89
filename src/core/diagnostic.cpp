#include "core/diagnostic.h"

#include <functional>

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
  members.emplace_back("code", diagnostic.code.name());
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
  const auto rank = static_cast<size_t>(diagnostic.severity);
  if (diagnostic.severity == Severity::error) ++errors_;
  const size_t hash = std::hash<std::string_view>()(diagnostic.message) ^ diagnostic.code.name().size();
  if (counts_repeats_ && diagnostic.severity != Severity::error && count_repeated(diagnostic, hash)) return;
  size_t end = 0;
  for (size_t i = 0; i <= rank; ++i) end += kept_[i];
  if (kept_[rank] < kLimit) {
    insert(end, std::move(diagnostic), hash);
    ++kept_[rank];
    return;
  }
  if (dropped_[rank]++ == 0) {
    insert(end, {diagnostic.severity, "too-many-problems", "", "", "fix these and check the config again"}, 0);
    ++kept_[rank];
    ++end;
  }
  items_[end - 1].message = text_of("{} more {}s are not shown", dropped_[rank], name_of(diagnostic.severity));
}

void DiagnosticList::insert(size_t at, Diagnostic diagnostic, size_t hash) {
  repeats_.insert(at, {hash, diagnostic.message.size(), 0});
  items_.insert(at, std::move(diagnostic));
}

bool DiagnosticList::count_repeated(const Diagnostic& diagnostic, size_t hash) {
  for (size_t i = 0; i < items_.size(); ++i) {
    Diagnostic& known = items_[i];
    Repeats& repeats = repeats_[i];
    if (repeats.hash != hash || known.severity != diagnostic.severity || known.code != diagnostic.code ||
        std::string_view(known.message).substr(0, repeats.length) != diagnostic.message)
      continue;
    if (known.where == diagnostic.where) return true;
    ++repeats.more;
    known.message.resize(repeats.length);
    known.message += text_of(" (and at {} other place{})", repeats.more, repeats.more == 1 ? "" : "s");
    return true;
  }
  return false;
}

void DiagnosticList::add_in(Severity severity, DiagnosticCode code, const std::string& where, const char* key,
                            const char* hint, const char* message, message::Values values) {
  std::string place = where;
  if (key != nullptr) {
    place += '/';
    place += json::pointer_token(key);
  }
  add({severity, code, std::move(place), message::write(message, values), hint == nullptr ? "" : hint});
}

Diagnostic::Diagnostic() noexcept = default;
Diagnostic::Diagnostic(Severity severity_, DiagnosticCode code_, std::string where_, std::string message_,
                       std::string_view hint_)
    : severity(severity_), code(code_), where(std::move(where_)), message(std::move(message_)), hint(hint_) {}
Diagnostic::Diagnostic(const Diagnostic& other) = default;
Diagnostic::Diagnostic(Diagnostic&& other) noexcept = default;
Diagnostic& Diagnostic::operator=(const Diagnostic& other) = default;
Diagnostic& Diagnostic::operator=(Diagnostic&& other) noexcept = default;
Diagnostic::~Diagnostic() = default;

void DiagnosticList::error(DiagnosticCode code, const std::string& where, const char* message, const char* hint) {
  add({Severity::error, code, where, message, hint});
}
void DiagnosticList::error(DiagnosticCode code, const std::string& where, const std::string& message,
                           const char* hint) {
  add({Severity::error, code, where, message, hint});
}
void DiagnosticList::error(DiagnosticCode code, const std::string& where, const std::string& message,
                           const std::string& hint) {
  add({Severity::error, code, where, message, hint});
}
void DiagnosticList::warning(DiagnosticCode code, const std::string& where, const char* message, const char* hint) {
  add({Severity::warning, code, where, message, hint});
}
void DiagnosticList::warning(DiagnosticCode code, const std::string& where, const std::string& message,
                             const char* hint) {
  add({Severity::warning, code, where, message, hint});
}

}  // namespace wasmquant
