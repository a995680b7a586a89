// Decimal text to the nearest double, ties to even, like strtod without hexadecimal, locale and 128-bit floats (14 KB
// of WebAssembly that configs hardly need).
#pragma once
#include <string_view>

namespace wasmquant {

/// `text` is a JSON number. Overflow gives infinity, underflow zero, with the sign of the text.
double parse_decimal(std::string_view text);

}  // namespace wasmquant
