// Errors of the core: a code from error.def, a location, and a sentence.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace wasmquant {

/// One per row of error.def.
enum class ErrorCode : uint8_t {
#define WASMQUANT_ERROR(code, name, sentence) code,
#include "core/error.def"
#undef WASMQUANT_ERROR
};

/// Kebab-case name of a code, which JavaScript sees as `QuantizationError.code`.
std::string_view name_of(ErrorCode code) noexcept;

/// One failure. `where` is a JSON pointer (config), a tensor name, or "byte N" of a file; it may be empty.
/// `message` says what was found, what was allowed and what to do, without repeating `where`.
struct Error {
  ErrorCode code = ErrorCode::argument_invalid;
  std::string where;
  std::string message;

  // Defined in error.cpp to keep the module small: errors are made in hundreds of places.
  Error() noexcept;
  Error(ErrorCode code, std::string_view where, std::string message) noexcept;
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error();
};

}  // namespace wasmquant
