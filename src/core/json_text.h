// Writes JSON text front to back, for tables too large for json::Value.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"

namespace wasmquant::json {

/// Appends to a text. Writes commas; the caller matches brackets and gives members keys.
class TextWriter {
 public:
  /// `out` must outlive it.
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
