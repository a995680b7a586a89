// GGUF metadata in file order. Values stay raw bytes, so copies are exact; typed access decodes on demand. After its
// type (u32) a value is: number or bool, little-endian; text: u64 length, bytes; array: u32 type, u64 count, elements.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/list.h"

namespace wasmquant::gguf {

/// Types of metadata values, numbered as in files.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
inline constexpr uint32_t kValueTypeCount = 13;

/// Bytes of one value of that type; 0 for text and arrays, which are variable.
uint32_t fixed_bytes(ValueType type) noexcept;
/// "u8", …, for messages.
std::string_view name_of(ValueType type) noexcept;

/// One key with its value.
struct KeyValue {
  std::string key;
  ValueType type = ValueType::u8;
  std::string bytes;  // the value, without its type
};

/// A value for display: text as is, numbers, "[31 f32]" for arrays.
std::string text_of_value(const KeyValue& entry);

/// Iterates over the elements of an array value. The entry must outlive the view.
class ArrayView {
 public:
  /// An entry of any type; if it is not an array, the view is empty.
  explicit ArrayView(const KeyValue* entry) noexcept;
  ValueType element_type() const noexcept { return type_; }
  uint64_t count() const noexcept { return count_; }
  /// The next element; call at most `count` times. Zero or empty if it has another type.
  std::string_view next_text() noexcept;
  double next_number() noexcept;

 private:
  ValueType type_ = ValueType::u8;
  uint64_t count_ = 0;
  const char* at_ = nullptr;
};

/// Writes an array value element by element.
class ArrayBuilder {
 public:
  explicit ArrayBuilder(ValueType element_type);
  void add_text(std::string_view text);
  void add_f32(float value);
  void add_i32(int32_t value);
  void add_u8(uint8_t value);
  uint64_t count() const noexcept { return count_; }
  KeyValue finish(std::string key) &&;

 private:
  std::string bytes_;
  uint64_t count_ = 0;
};

/// Keys with values in file order; owns both. Views it returns are valid until it changes.
class Metadata {
 public:
  const List<KeyValue>& entries() const noexcept { return entries_; }
  /// Null if absent. Linear search: real files have dozens of keys.
  const KeyValue* find(std::string_view key) const noexcept;

  /// An integer >= 0 of any integer type, or an array's first such element. Nullopt if absent or of another type.
  std::optional<uint64_t> find_count(std::string_view key) const noexcept;
  std::optional<double> find_number(std::string_view key) const noexcept;
  std::optional<std::string_view> find_text(std::string_view key) const noexcept;

  // Each replaces the key's value in place, or appends it. Keys must not be empty.
  void set(KeyValue entry);
  void set_u16(std::string_view key, uint16_t value);
  void set_u32(std::string_view key, uint32_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_f32(std::string_view key, float value);
  void set_bool(std::string_view key, bool value);
  void set_text(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  /// Appends without checking for duplicates; for the reader.
  void append(KeyValue entry) { entries_.push_back(std::move(entry)); }

 private:
  void set_fixed(std::string_view key, ValueType type, const void* value);
  List<KeyValue> entries_;
};

/// Appends a GGUF string: u64 length and the text.
void append_text(std::string& out, std::string_view text);
void append_u32(std::string& out, uint32_t value);
void append_u64(std::string& out, uint64_t value);

}  // namespace wasmquant::gguf
