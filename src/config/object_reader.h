// Reads one JSON object against the table of its keys: unknown keys, wrong kinds and keys given twice under two
// spellings become diagnostics, and what remains is safe to use. Null means "not given" for every key.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/diagnostic.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant::config {

// Kinds of value a key takes; or-ed.
inline constexpr uint8_t kBool = 1, kInteger = 2, kNumber = 4, kString = 8, kArray = 16, kObject = 32;

struct Key {
  const char* name;
  uint8_t kinds;
  const char* old_name = nullptr;  // accepted on input
};

// Names are plain C strings here: they are literals in a hundred calls, and a string_view would double each.
class ObjectReader {
 public:
  /// Checks `value` at once. All referred to must outlive the reader. A value that is no object reads as an empty one.
  ObjectReader(const json::Value& value, std::string where, std::span<const Key> keys, DiagnosticList& out);

  bool is_object() const noexcept { return value_.is_object(); }
  /// The member, when given, not null and of a kind the table allows; else null.
  const json::Value* find(const char* name) const noexcept;
  /// JSON pointer of a member, as the text spells it.
  std::string at(const char* name) const;

  /// Index of the member's word in `words`; -1 when not given or not one of them (which is then a diagnostic).
  int word(const char* name, std::span<const std::string_view> words) const;
  template <class Enum>
  void read_word(const char* name, std::span<const std::string_view> words, Enum& target) const {
    if (const int index = word(name, words); index >= 0) target = static_cast<Enum>(index);
  }

  /// A diagnostic at the member's place.
  void error(const char* code, const char* name, const char* message, const char* hint = "") const;
  void error(const char* code, const char* name, const std::string& message, const char* hint = "") const;
  void error(const char* code, const char* name, const std::string& message, const std::string& hint) const;
  void warning(const char* code, const char* name, const char* message, const char* hint = "") const;
  void warning(const char* code, const char* name, const std::string& message, const char* hint = "") const;

  const std::string& where() const noexcept { return where_; }
  DiagnosticList& out() const noexcept { return out_; }

 private:
  struct Found {
    const char* name;  // of the table
    const json::Member* member;
  };

  const json::Value& value_;
  std::string where_;
  DiagnosticList& out_;
  List<Found> found_;
};

/// `where` + "/" + the escaped name.
std::string pointer_to(const std::string& where, std::string_view name);

}  // namespace wasmquant::config
