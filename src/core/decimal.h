// Decimal text to the nearest double, ties to even: what strtod does, without its hexadecimal, its locale and its
// 128-bit floating point (14 KB of WebAssembly for numbers that configs hardly use).
#pragma once
#include <string_view>

namespace wasmquant {

/// `text` is a number by JSON's grammar. Too large gives infinity, too small gives zero, with the sign of the text.
double parse_decimal(std::string_view text);

}  // namespace wasmquant
