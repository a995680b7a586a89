// Where a JSON text is wrong, for people: line, column, and the line itself.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace wasmquant::config {

/// A place in a text, counted from 1. Columns are code points.
struct JsonPlace {
  uint64_t line = 1, column = 1;
  /// Two lines: at most 72 characters of the line around the place, and a caret below the place.
  std::string excerpt;
};

/// The place of "byte N", as JSON errors name it; byte 0 if `where` is something else.
JsonPlace place_of(std::string_view text, std::string_view where);

}  // namespace wasmquant::config
