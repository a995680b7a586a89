// JSON text written from front to back, for tables that are too large to stand in memory as values.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"

namespace wasmquant::json {

/// Appends to a text. Commas are its business; that brackets match and that members have keys is the caller's.
class TextWriter {
 public:
  /// `out` outlives it.
  explicit TextWriter(std::string& out) : out_(out) {}

  void begin(char bracket);
  void end(char bracket);
  /// Plain ASCII without quotes and backslashes.
  void key(const char* name);
  void add(std::string_view text);
  void add(uint64_t number);
  void add(std::span<const uint64_t> numbers);
  void add(const Value& value);
  /// JSON text.
  void add_json(std::string_view text);

  template <class T>
  void member(const char* name, const T& value) {
    key(name);
    add(value);
  }

 private:
  void separate();

  std::string& out_;
  bool follows_ = false;  // a value, in the same object or array
};

}  // namespace wasmquant::json
