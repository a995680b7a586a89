// GGUF metadata: keys and values in file order. Values stay the bytes of the file, so that a file made from another one
// repeats every key to the byte; typed access decodes on demand.
// A value after its type (u32): number or bool as they are, little-endian; text: u64 length, bytes; array: u32 element
// type, u64 count, elements.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/list.h"

namespace wasmquant::gguf {

/// Numbers as in the file.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
inline constexpr uint32_t kValueTypeCount = 13;

/// Bytes of one value of that type; 0 for text and arrays, whose sizes are in the file.
uint32_t fixed_bytes(ValueType type) noexcept;
/// "u8", …, for messages.
std::string_view name_of(ValueType type) noexcept;

/// One key with its value.
struct Entry {
  std::string key;
  ValueType type = ValueType::u8;
  std::string bytes;  // the value, without its type
};

/// A value for people: text as it is, numbers, "[31 f32]" for arrays.
std::string text_of_value(const Entry& entry);

/// The elements of an array value, one after the other. The entry must outlive the view.
class ArrayView {
 public:
  /// An entry of any type; of one that is no array there are no elements.
  explicit ArrayView(const Entry* entry) noexcept;
  ValueType element_type() const noexcept { return type_; }
  uint64_t count() const noexcept { return count_; }
  /// The next element; to be called `count` times at most. Zero or empty when it is of the other kind.
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
  Entry finish(std::string key) &&;

 private:
  std::string bytes_;
  uint64_t count_ = 0;
};

class Metadata {
 public:
  const List<Entry>& entries() const noexcept { return entries_; }
  /// Null when absent. One pass over the keys: there are dozens of them in a real file.
  const Entry* find(std::string_view key) const noexcept;

  /// A whole number >= 0 of any integer type; of an array its first element. Empty when absent or something else.
  std::optional<uint64_t> find_count(std::string_view key) const noexcept;
  std::optional<double> find_number(std::string_view key) const noexcept;
  std::optional<std::string_view> find_text(std::string_view key) const noexcept;

  // Each replaces the value where the key stands, or appends it. Keys are not empty.
  void set(Entry entry);
  void set_u16(std::string_view key, uint16_t value);
  void set_u32(std::string_view key, uint32_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_f32(std::string_view key, float value);
  void set_bool(std::string_view key, bool value);
  void set_text(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  /// Without looking whether the key is there; the reader's.
  void append(Entry entry) { entries_.push_back(std::move(entry)); }

 private:
  void set_fixed(std::string_view key, ValueType type, const void* value);
  List<Entry> entries_;
};

/// Appends a u64 length and the text, as GGUF writes strings.
void append_text(std::string& out, std::string_view text);
void append_u32(std::string& out, uint32_t value);
void append_u64(std::string& out, uint64_t value);

}  // namespace wasmquant::gguf
