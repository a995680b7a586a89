// Values are decoded from and appended to raw little-endian bytes.
#include "formats/gguf/gguf_metadata.h"

#include <bit>
#include <cstring>
#include <utility>

#include "core/json.h"
#include "core/message.h"

namespace wasmquant::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie in memory");

constexpr uint8_t kBytes[kValueTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::string_view kNames[kValueTypeCount] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                                      "bool", "text", "array", "u64", "i64", "f64"};

template <class T>
T load(const char* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// Integers as 64-bit two's complement; false for floating point, text and arrays.
bool load_integer(ValueType type, const char* at, int64_t& value) noexcept {
  switch (type) {
    case ValueType::u8:
    case ValueType::boolean:
      value = load<uint8_t>(at);
      return true;
    case ValueType::i8:
      value = load<int8_t>(at);
      return true;
    case ValueType::u16:
      value = load<uint16_t>(at);
      return true;
    case ValueType::i16:
      value = load<int16_t>(at);
      return true;
    case ValueType::u32:
      value = load<uint32_t>(at);
      return true;
    case ValueType::i32:
      value = load<int32_t>(at);
      return true;
    case ValueType::u64:
    case ValueType::i64:
      value = load<int64_t>(at);
      return true;
    default:
      return false;
  }
}

double load_number(ValueType type, const char* at) noexcept {
  if (type == ValueType::f32) return load<float>(at);
  if (type == ValueType::f64) return load<double>(at);
  int64_t value = 0;
  load_integer(type, at, value);
  return type == ValueType::u64 ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
}

void append_raw(std::string& out, const void* value, size_t bytes) {
  out.append(static_cast<const char*>(value), bytes);
}

}  // namespace

uint32_t fixed_bytes(ValueType type) noexcept { return kBytes[static_cast<uint32_t>(type)]; }
std::string_view name_of(ValueType type) noexcept { return kNames[static_cast<uint32_t>(type)]; }

void append_u32(std::string& out, uint32_t value) { append_raw(out, &value, sizeof(value)); }
void append_u64(std::string& out, uint64_t value) { append_raw(out, &value, sizeof(value)); }
void append_text(std::string& out, std::string_view text) {
  append_u64(out, text.size());
  out += text;
}

std::string text_of_value(const KeyValue& entry) {
  const char* at = entry.bytes.data();
  if (entry.type == ValueType::text) return entry.bytes.substr(8);
  if (entry.type == ValueType::array)
    return text_of("[{} {}]", load<uint64_t>(at + 4), name_of(static_cast<ValueType>(load<uint32_t>(at))));
  if (entry.type == ValueType::boolean) return *at != 0 ? "true" : "false";
  int64_t whole = 0;
  if (load_integer(entry.type, at, whole))
    return entry.type == ValueType::u64 ? text_of("{}", static_cast<uint64_t>(whole)) : text_of("{}", whole);
  return json::write(json::Value(load_number(entry.type, at)));
}

ArrayView::ArrayView(const KeyValue* entry) noexcept {
  if (entry == nullptr || entry->type != ValueType::array) return;
  at_ = entry->bytes.data();
  type_ = static_cast<ValueType>(load<uint32_t>(at_));
  count_ = load<uint64_t>(at_ + 4);
  at_ += 12;
}

std::string_view ArrayView::next_text() noexcept {
  if (type_ != ValueType::text) return {};
  const auto length = static_cast<size_t>(load<uint64_t>(at_));
  const std::string_view text(at_ + 8, length);
  at_ += 8 + length;
  return text;
}

double ArrayView::next_number() noexcept {
  if (type_ == ValueType::text) return 0;
  const double number = load_number(type_, at_);
  at_ += fixed_bytes(type_);
  return number;
}

ArrayBuilder::ArrayBuilder(ValueType element_type) {
  append_u32(bytes_, static_cast<uint32_t>(element_type));
  append_u64(bytes_, 0);
}
void ArrayBuilder::add_text(std::string_view text) {
  append_text(bytes_, text);
  ++count_;
}
void ArrayBuilder::add_f32(float value) {
  append_raw(bytes_, &value, sizeof(value));
  ++count_;
}
void ArrayBuilder::add_i32(int32_t value) {
  append_raw(bytes_, &value, sizeof(value));
  ++count_;
}
void ArrayBuilder::add_u8(uint8_t value) {
  bytes_ += static_cast<char>(value);
  ++count_;
}
KeyValue ArrayBuilder::finish(std::string key) && {
  std::memcpy(bytes_.data() + 4, &count_, sizeof(count_));
  return {std::move(key), ValueType::array, std::move(bytes_)};
}

const KeyValue* Metadata::find(std::string_view key) const noexcept {
  for (const KeyValue& entry : entries_)
    if (entry.key == key) return &entry;
  return nullptr;
}

std::optional<uint64_t> Metadata::find_count(std::string_view key) const noexcept {
  const KeyValue* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  ValueType type = entry->type;
  const char* at = entry->bytes.data();
  if (type == ValueType::array) {
    if (ArrayView(entry).count() == 0) return std::nullopt;
    type = static_cast<ValueType>(load<uint32_t>(at));
    at += 12;
  }
  int64_t value = 0;
  if (!load_integer(type, at, value) || (value < 0 && type != ValueType::u64)) return std::nullopt;
  return static_cast<uint64_t>(value);
}

std::optional<double> Metadata::find_number(std::string_view key) const noexcept {
  const KeyValue* entry = find(key);
  if (entry == nullptr || fixed_bytes(entry->type) == 0) return std::nullopt;
  return load_number(entry->type, entry->bytes.data());
}

std::optional<std::string_view> Metadata::find_text(std::string_view key) const noexcept {
  const KeyValue* entry = find(key);
  if (entry == nullptr || entry->type != ValueType::text) return std::nullopt;
  return std::string_view(entry->bytes).substr(8);
}

void Metadata::set(KeyValue entry) {
  for (KeyValue& there : entries_)
    if (there.key == entry.key) {
      there = std::move(entry);
      return;
    }
  append(std::move(entry));
}

void Metadata::set_fixed(std::string_view key, ValueType type, const void* value) {
  set({std::string(key), type, std::string(static_cast<const char*>(value), fixed_bytes(type))});
}
void Metadata::set_u16(std::string_view key, uint16_t value) { set_fixed(key, ValueType::u16, &value); }
void Metadata::set_u32(std::string_view key, uint32_t value) { set_fixed(key, ValueType::u32, &value); }
void Metadata::set_i32(std::string_view key, int32_t value) { set_fixed(key, ValueType::i32, &value); }
void Metadata::set_f32(std::string_view key, float value) { set_fixed(key, ValueType::f32, &value); }
void Metadata::set_bool(std::string_view key, bool value) { set_fixed(key, ValueType::boolean, &value); }
void Metadata::set_text(std::string_view key, std::string_view value) {
  KeyValue entry{std::string(key), ValueType::text, {}};
  append_text(entry.bytes, value);
  set(std::move(entry));
}

void Metadata::erase(std::string_view key) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].key != key) continue;
    std::rotate(entries_.begin() + i, entries_.begin() + i + 1, entries_.end());
    entries_.pop_back();
    return;
  }
}

}  // namespace wasmquant::gguf
