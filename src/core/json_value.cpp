// Out-of-line members of json::Value.
#include <cmath>

#include "core/json.h"

namespace wasmquant::json {

Value::Value() noexcept = default;
Value::Value(std::nullptr_t) noexcept {}
Value::Value(bool v) noexcept : kind_(Kind::boolean), integer_(v) {}
Value::Value(int v) noexcept : kind_(Kind::integer), integer_(v) {}
Value::Value(int64_t v) noexcept : kind_(Kind::integer), integer_(v) {}
Value::Value(uint64_t v) noexcept : kind_(Kind::integer), integer_(static_cast<int64_t>(v)) {}
Value::Value(double v) noexcept : kind_(Kind::real), real_(v) {}
Value::Value(const char* v) : kind_(Kind::string), string_(v) {}
Value::Value(std::string v) noexcept : kind_(Kind::string), string_(std::move(v)) {}
Value::Value(std::string_view v) : kind_(Kind::string), string_(v) {}
Value::Value(Array v) noexcept : kind_(Kind::array), array_(std::move(v)) {}
Value::Value(Object v) noexcept : kind_(Kind::object), object_(std::move(v)) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

bool operator==(const Value& a, const Value& b) {
  return a.kind_ == b.kind_ && a.integer_ == b.integer_ && a.real_ == b.real_ && a.string_ == b.string_ &&
         a.array_ == b.array_ && a.object_ == b.object_;
}

bool Value::is_finite() const noexcept { return is_number() && std::isfinite(as_number()); }

const Value* Value::find(std::string_view key) const noexcept {
  for (const Member& member : object_)
    if (member.first == key) return &member.second;
  return nullptr;
}

const Value& Value::operator[](const char* key) const noexcept {
  static const Value kNull;
  const Value* const member = find(key);
  return member == nullptr ? kNull : *member;
}

Value& Value::member(std::string_view key) {
  if (kind_ == Kind::null) kind_ = Kind::object;
  for (Member& member : object_)
    if (member.first == key) return member.second;
  return object_.emplace_back(key, Value()).second;
}

void Value::set(const char* key, Value&& value) { member(key) = std::move(value); }
void Value::set(const std::string& key, Value&& value) { member(key) = std::move(value); }
void Value::set(const char* key, std::nullptr_t) { set(key, Value()); }
void Value::set(const char* key, bool v) { set(key, Value(v)); }
void Value::set(const char* key, int v) { set(key, Value(v)); }
void Value::set(const char* key, int64_t v) { set(key, Value(v)); }
void Value::set(const char* key, uint64_t v) { set(key, Value(v)); }
void Value::set(const char* key, double v) { set(key, Value(v)); }
void Value::set(const char* key, const char* v) { set(key, Value(v)); }
void Value::set(const char* key, const std::string& v) { set(key, Value(v)); }
void Value::set(const char* key, std::string_view v) { set(key, Value(v)); }
void Value::set(const char* key, const Value& v) { set(key, Value(v)); }
void Value::set(const char* key, const std::vector<uint64_t>& v) { set(key, Array(v.begin(), v.end())); }

}  // namespace wasmquant::json
