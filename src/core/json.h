// Bounded JSON for untrusted text. RFC 8259, valid UTF-8, no lone surrogates, no NaN or Infinity, object order kept,
// duplicate keys rejected; files written by Python are read like Python reads them (Grammar::python).
// Limits on depth, size and nodes apply before memory is allocated.
// RapidJSON parses and prints numbers (hidden in json_events.cpp and json_write.cpp); value type and limits are here.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/list.h"
#include "core/result.h"

namespace wasmquant::json {

/// The accepted syntax.
enum class Grammar : uint8_t {
  strict,  // RFC 8259; a key that appears twice in an object is an error
  python   // Python's json module: also Infinity, -Infinity and NaN; of members with one name the last counts
};

/// Limits on a text; exceeding one is json-invalid.
struct Limits {
  uint64_t max_bytes = 64ull << 20;
  uint32_t max_depth = 64;
  uint64_t max_nodes = 4'000'000;
  Grammar grammar = Grammar::strict;
};

/// For the files of a checkpoint: Python writes config.json and its siblings.
inline constexpr Limits kPython{.grammar = Grammar::python};

class Value;
using Array = List<Value>;
using Member = std::pair<std::string, Value>;
using Object = List<Member>;  // insertion order

/// The kind of a value.
enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };

/// One JSON value. Whole numbers in the range of int64 are `integer`; others are `real`, finite unless Grammar::python.
class Value {
 public:
  // All defined in json_value.cpp to keep the module small: values are made and dropped in hundreds of places.
  Value() noexcept;
  Value(std::nullptr_t) noexcept;
  Value(bool v) noexcept;
  Value(int v) noexcept;
  Value(int64_t v) noexcept;
  Value(uint64_t v) noexcept;  // callers keep below 2^63
  Value(double v) noexcept;
  Value(const char* v);
  Value(std::string v) noexcept;
  Value(std::string_view v);
  Value(Array v) noexcept;
  Value(Object v) noexcept;
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  Kind kind() const noexcept { return kind_; }
  bool is_null() const noexcept { return kind_ == Kind::null; }
  bool is_bool() const noexcept { return kind_ == Kind::boolean; }
  bool is_integer() const noexcept { return kind_ == Kind::integer; }
  bool is_number() const noexcept { return kind_ == Kind::integer || kind_ == Kind::real; }
  bool is_finite() const noexcept;  // a number, and neither infinite nor NaN
  bool is_string() const noexcept { return kind_ == Kind::string; }
  bool is_array() const noexcept { return kind_ == Kind::array; }
  bool is_object() const noexcept { return kind_ == Kind::object; }

  // Accessors return the zero of their type if the kind differs; check the kind first.
  bool as_bool() const noexcept { return kind_ == Kind::boolean && integer_ != 0; }
  int64_t as_integer() const noexcept { return kind_ == Kind::integer ? integer_ : 0; }
  double as_number() const noexcept { return kind_ == Kind::integer ? static_cast<double>(integer_) : real_; }
  const std::string& as_string() const noexcept { return string_; }
  const Array& items() const noexcept { return array_; }
  Array& items() noexcept { return array_; }
  const Object& members() const noexcept { return object_; }
  Object& members() noexcept { return object_; }

  /// The member with this name; null if absent or if this is not an object.
  const Value* find(std::string_view key) const noexcept;
  /// The member with this name; a null value if absent.
  const Value& operator[](const char* key) const noexcept;
  /// The member with this name, to be changed; added as a null value if absent. Turns a null value into an object.
  Value& member(std::string_view key);
  /// Appends or replaces a member; turns a null value into an object.
  void set(const char* key, Value&& value);
  void set(const std::string& key, Value&& value);
  // Shorthands for writing objects member by member.
  void set(const char* key, std::nullptr_t);
  void set(const char* key, bool v);
  void set(const char* key, int v);
  void set(const char* key, int64_t v);
  void set(const char* key, uint64_t v);
  void set(const char* key, double v);
  void set(const char* key, const char* v);
  void set(const char* key, const std::string& v);
  void set(const char* key, std::string_view v);
  void set(const char* key, const Value& v);
  /// An array of whole numbers, such as a shape.
  void set(const char* key, const std::vector<uint64_t>& v);

  friend bool operator==(const Value& a, const Value& b);

 private:
  Kind kind_ = Kind::null;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string string_;
  Array array_;
  Object object_;
};

/// Parses one JSON text. Errors: json-invalid with `where` = "byte N" (or a JSON pointer for a duplicate key).
Result<Value> parse(std::string_view text, const Limits& limits = {});

/// Compact text (indent 0) or indented text. Reals are printed so that they read back to the same double;
/// a non-finite real is written as null.
std::string write(const Value& value, int indent = 0);

/// Appends `text` as a JSON string literal with quotes; invalid UTF-8 becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text);

/// Whether the text is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view text) noexcept;
/// The length of the longest valid UTF-8 prefix.
size_t utf8_prefix(std::string_view text) noexcept;

/// Short English name of a kind, for messages: "null", "a boolean", "an integer", ...
std::string_view describe(Kind kind) noexcept;

/// Escapes one reference token of a JSON pointer (RFC 6901: ~ to ~0, / to ~1).
std::string pointer_token(std::string_view name);

}  // namespace wasmquant::json
