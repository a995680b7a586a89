// Errors of the core: a code from error.def, a location, and a sentence.
#pragma once
#include <string>
#include <string_view>

#include "core/codes/error_code.h"

namespace wasmquant {

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
