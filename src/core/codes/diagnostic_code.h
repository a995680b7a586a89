// Codes of diagnostics: the rows of error.def and of diagnostics.def. A code is written as its name, which the compiler
// looks up, so that no file reports a code without a row:
//
//   out.warning("key-unknown", where, "...");
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "core/codes/error_code.h"

namespace wasmquant {

namespace diagnostic_codes {

/// Names of all codes: those of ErrorCode in its order, then the others.
inline constexpr std::string_view kNames[] = {
#define WASMQUANT_ERROR(code, name, meaning, advice) name,
#include "core/codes/error.def"
#undef WASMQUANT_ERROR
#define WASMQUANT_DIAGNOSTIC(name, severities, meaning, advice) name,
#include "core/codes/diagnostics.def"
#undef WASMQUANT_DIAGNOSTIC
};

// Not constexpr: a call while a name is looked up is an error of the compiler, which shows this function's name.
uint8_t not_a_row_of_diagnostics_def() noexcept;

consteval uint8_t index_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<uint8_t>(i);
  return not_a_row_of_diagnostics_def();
}

static_assert(std::size(kNames) < 256);

}  // namespace diagnostic_codes

/// The code of a diagnostic; one byte.
class DiagnosticCode {
 public:
  /// From a literal, such as "key-unknown"; other texts do not compile.
  consteval DiagnosticCode(const char* name) noexcept : index_(diagnostic_codes::index_of(name)) {}
  /// An error that is reported together with others.
  constexpr DiagnosticCode(ErrorCode code) noexcept : index_(static_cast<uint8_t>(code)) {}

  /// As reports spell it.
  constexpr std::string_view name() const noexcept { return diagnostic_codes::kNames[index_]; }
  friend constexpr bool operator==(DiagnosticCode, DiagnosticCode) noexcept = default;
  /// Whether it has that name; any text may be compared.
  template <class Text>
  requires std::is_convertible_v<const Text&, std::string_view>
  friend constexpr bool operator==(DiagnosticCode code, const Text& name) noexcept {
    return code.name() == std::string_view(name);
  }

 private:
  uint8_t index_;
};

}  // namespace wasmquant
