// Reads one JSON object against the table of its keys: unknown keys, wrong kinds and keys given under two spellings
// become diagnostics, and the rest is safe to use. Null means "not given" for every key.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"

namespace wasmquant::config {

// Kinds of value a key takes; OR-ed.
inline constexpr uint16_t kBool = 1, kInteger = 2, kNumber = 4, kString = 8, kArray = 16, kObject = 32;
// With kObject: an object with arbitrary names as keys.
inline constexpr uint16_t kMap = 64;
// With kArray: of non-empty strings.
inline constexpr uint16_t kNames = 128;
// Says how other programs run or made a file: read, without effect on the result. A value other than the standard one
// gets a note.
inline constexpr uint16_t kNoEffect = 256;

struct Keys;

/// One key of an object: name, kinds, and what apply_defaults() needs.
struct Key {
  const char* name;
  uint16_t kinds;
  const char* old_name = nullptr;  // accepted on input
  // The rest is for apply_defaults():
  const char* standard = nullptr;  // JSON text of the value when none is given; null: null
  const char* words = nullptr;     // allowed strings: "grid|golden_section"
  const Keys* of = nullptr;        // keys of the object, of each value of a map, of each object in an array
};

/// The keys of one class of a dialect.
struct Keys {
  const Key* rows;
  size_t count;
  bool lenient = false;                  // unknown keys are warnings: written by other programs, in many versions
  const char* title = nullptr;           // of the class, in the dialect's words: for the JSON Schema
  json::Value (*standards)() = nullptr;  // values of keys that are not given, where a struct has them

  template <size_t N>
  constexpr Keys(const Key (&table)[N], bool lenient_ = false) : rows(table), count(N), lenient(lenient_) {}
  template <size_t N>
  constexpr Keys(const Key (&table)[N], const char* title_, json::Value (*standards_)() = nullptr)
      : rows(table), count(N), title(title_), standards(standards_) {}
  constexpr operator std::span<const Key>() const { return {rows, count}; }
};

/// Reads an object's members by name, and puts a diagnostic with a JSON pointer into `out` for each that is wrong. Names
/// are plain C strings: they are literals in a hundred calls, and a string_view would double each.
class ObjectReader {
 public:
  /// Checks `value` immediately. The arguments must outlive the reader. A value that is not an object reads as empty.
  ObjectReader(const json::Value& value, std::string where, std::span<const Key> keys, DiagnosticList& out,
               bool lenient = false);

  bool is_object() const noexcept { return value_.is_object(); }
  /// The member, if given, not null and of a kind the table allows; else null.
  const json::Value* find(const char* name) const noexcept;
  /// Whether the text has the member, of any kind.
  bool mentions(const char* name) const noexcept { return !value_[name].is_null(); }
  /// JSON pointer of a member, as the text spells it.
  std::string at(const char* name) const;

  /// Index of the member's word in `words` (index_of_word); -1 if not given, or not one of them (with a diagnostic).
  int word(const char* name, std::span<const std::string_view> words) const;
  template <class Enum>
  void read_word(const char* name, std::span<const std::string_view> words, Enum& target) const {
    if (const int index = word(name, words); index >= 0) target = static_cast<Enum>(index);
  }

  /// A diagnostic at the member's place.
  void error(DiagnosticCode code, const char* name, const char* message, const char* hint = "") const;
  void error(DiagnosticCode code, const char* name, const std::string& message, const char* hint = "") const;
  void error(DiagnosticCode code, const char* name, const std::string& message, const std::string& hint) const;
  void warning(DiagnosticCode code, const char* name, const char* message, const char* hint = "") const;
  void warning(DiagnosticCode code, const char* name, const std::string& message, const char* hint = "") const;

  const std::string& where() const noexcept { return where_; }
  DiagnosticList& out() const noexcept { return out_; }

 private:
  void note_without_effect(std::span<const Key> keys) const;

  struct Found {
    const char* name;  // of the table
    const json::Member* member;
  };

  const json::Value& value_;
  std::string where_;
  DiagnosticList& out_;
  List<Found> found_;
};

/// `value` checked against the table, recursively: an object with every key of the table, in its order and under its
/// current name, with defaults filled in. Errors are reported and replaced by defaults, so it needs no more checks.
json::Value apply_defaults(const json::Value& value, const std::string& where, const Keys& keys, DiagnosticList& out);

/// Index of `text` in "a|b|c", or -1.
int index_in(std::string_view text, std::string_view words) noexcept;
/// The word of that index.
std::string_view word_at(std::string_view words, size_t index) noexcept;

/// What a text copied from Python names: the last part of "Dtype.int4", "<Dtype.int4: 'int4'>",
/// "torch.nn.modules.linear.Linear" and "<class 'torch.nn.modules.linear.Linear'>".
std::string_view python_name(std::string_view text) noexcept;
/// Index of `text` in `words`: itself, else its python_name with upper and lower case counted as equal. -1: none.
int index_of_word(std::string_view text, std::span<const std::string_view> words) noexcept;
/// The same for a class of layers, whose lists begin with Linear: Keras' name of it is one, too.
int layer_type_index(std::string_view text, std::span<const std::string_view> types) noexcept;

/// The diagnostic for a word that is not in `words`.
void unknown_word(std::string_view word, const std::string& where, std::span<const std::string_view> words,
                  DiagnosticList& out);

/// The diagnostic for a key that is not in `keys`; `where` is that of its object.
void unknown_key(std::string_view key, const std::string& where, std::span<const std::string_view> keys,
                 Severity severity, DiagnosticList& out);

/// An error for an empty name, and for a `re:` pattern that cannot be used.
void check_pattern(std::string_view pattern, const std::string& where, DiagnosticList& out);

/// `where` + "/" + the escaped name.
std::string pointer_to(const std::string& where, std::string_view name);

}  // namespace wasmquant::config
