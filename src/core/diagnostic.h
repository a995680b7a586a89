// Problems and remarks about a config, collected instead of stopping at the first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/codes/diagnostic_code.h"
#include "core/json.h"
#include "core/list.h"
#include "core/message.h"

namespace wasmquant {

/// An error makes a config unusable.
enum class Severity : uint8_t { error, warning, note };

/// One problem or remark. `where` is a JSON pointer into the config (or "byte N" of a text that is not JSON).
struct Diagnostic {
  Severity severity = Severity::error;
  DiagnosticCode code = ErrorCode::argument_invalid;
  std::string where;
  std::string message;
  std::string hint;  // what to do; may be empty

  // Defined in diagnostic.cpp to keep the module small: diagnostics are made in many places.
  Diagnostic() noexcept;
  Diagnostic(Severity severity, DiagnosticCode code, std::string where, std::string message, std::string_view hint);
  Diagnostic(const Diagnostic& other);
  Diagnostic(Diagnostic&& other) noexcept;
  Diagnostic& operator=(const Diagnostic& other);
  Diagnostic& operator=(Diagnostic&& other) noexcept;
  ~Diagnostic();

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

std::string_view name_of(Severity severity) noexcept;

/// {severity, code, where, message[, hint]}
json::Value to_json(const Diagnostic& diagnostic);
json::Value to_json(const List<Diagnostic>& diagnostics);

/// A growing list, errors first, then warnings, then notes, each in the order in which they were added. It has a limit,
/// so that a hostile config cannot make an unbounded report. A warning or note whose code and message are those of an
/// earlier one is counted there.
class DiagnosticList {
 public:
  /// Diagnostics of one severity that are kept; one more says that others were dropped.
  static constexpr size_t kLimit = 200;

  DiagnosticList() noexcept = default;
  /// False keeps a warning or note at every place that has it.
  explicit DiagnosticList(bool counts_repeats) noexcept : counts_repeats_(counts_repeats) {}

  void error(DiagnosticCode code, const std::string& where, const char* message, const char* hint = "");
  void error(DiagnosticCode code, const std::string& where, const std::string& message, const char* hint = "");
  void error(DiagnosticCode code, const std::string& where, const std::string& message, const std::string& hint);
  void warning(DiagnosticCode code, const std::string& where, const char* message, const char* hint = "");
  void warning(DiagnosticCode code, const std::string& where, const std::string& message, const char* hint = "");
  void add(Diagnostic diagnostic);
  /// At `where`/`key`, or at `where` itself if `key` is null. The message has placeholders (core/message.h); `hint` may
  /// be null. A single call without temporaries, because dialects use it in a hundred places.
  template <class... T>
  void error_in(DiagnosticCode code, const std::string& where, const char* key, const char* hint, const char* message,
                const T&... values) {
    const void* const at[] = {&values..., nullptr};
    add_in(Severity::error, code, where, key, hint, message, {at, message::kKinds<message::kind_of<T>()...>});
  }
  template <class... T>
  void warning_in(DiagnosticCode code, const std::string& where, const char* key, const char* hint, const char* message,
                  const T&... values) {
    const void* const at[] = {&values..., nullptr};
    add_in(Severity::warning, code, where, key, hint, message, {at, message::kKinds<message::kind_of<T>()...>});
  }

  /// Errors added so far, including dropped ones.
  size_t errors() const noexcept { return errors_; }
  /// Whether further diagnostics may be dropped.
  bool full() const noexcept { return items_.size() >= kLimit; }
  const List<Diagnostic>& items() const noexcept { return items_; }
  List<Diagnostic> take() noexcept { return std::move(items_); }

 private:
  void add_in(Severity severity, DiagnosticCode code, const std::string& where, const char* key, const char* hint,
              const char* message, message::Values values);

  /// Of an item: what finds its repetitions, and how many there were.
  struct Repeats {
    size_t hash = 0;    // of code and message
    size_t length = 0;  // of the message without its count
    uint64_t more = 0;
  };
  static constexpr size_t kSeverities = 3;

  /// Counts the diagnostic with an equal one; false if there is none.
  bool count_repeated(const Diagnostic& diagnostic, size_t hash);
  void insert(size_t at, Diagnostic diagnostic, size_t hash);

  List<Diagnostic> items_;
  List<Repeats> repeats_;          // of the item with the same index
  size_t kept_[kSeverities] = {};  // items of each severity
  uint64_t dropped_[kSeverities] = {};
  size_t errors_ = 0;
  bool counts_repeats_ = true;
};

}  // namespace wasmquant
