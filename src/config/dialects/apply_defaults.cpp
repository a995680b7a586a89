// Checks a dialect's objects against the key tables of their classes: one walk for all dialects.
#include <algorithm>

#include "config/reading/object_reader.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

List<std::string_view> split(std::string_view words) {
  List<std::string_view> parts;
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find('|', begin), words.size());
    parts.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

json::Value standard_of(const Key& key, const std::string& where, DiagnosticList& out) {
  if (key.standard == nullptr) return nullptr;
  auto value = json::parse(key.standard);
  if (!value) return nullptr;
  if (key.of == nullptr || !value->is_object() || (key.kinds & kMap) != 0) return std::move(*value);
  return apply_defaults(*value, pointer_to(where, key.name), *key.of, out);
}

// Completes a value of the right kind. False: do not use it.
bool complete_value(const json::Value& value, const std::string& where, const Key& key, DiagnosticList& out,
                    json::Value& into) {
  if (value.is_string() && key.words != nullptr) {
    const List<std::string_view> words = split(key.words);
    const std::span<const std::string_view> all(words.data(), words.size());
    const int index = index_of_word(value.as_string(), all);
    if (index < 0)
      unknown_word(value.as_string(), where, all, out);
    else
      into = json::Value(words[static_cast<size_t>(index)]);
    return index >= 0;
  }
  if ((key.kinds & kMap) != 0 && value.is_object()) {
    json::Object members;
    for (const auto& [name, member] : value.members()) {
      if (member.is_null()) continue;
      members.emplace_back(name, apply_defaults(member, pointer_to(where, name), *key.of, out));
    }
    into = std::move(members);
    return true;
  }
  if (value.is_array() && ((key.kinds & kNames) != 0 || key.of != nullptr)) {
    json::Array items;
    for (size_t i = 0; i < value.items().size(); ++i) {
      const json::Value& item = value.items()[i];
      const std::string place = text_of("{}/{}", where, i);
      if ((key.kinds & kNames) == 0) {
        items.push_back(apply_defaults(item, place, *key.of, out));
      } else if (item.is_string()) {
        items.push_back(item);
      } else {
        out.error_in("type-invalid", place, nullptr, nullptr, "expected a string, found {}",
                     json::describe(item.kind()));
      }
    }
    into = std::move(items);
    return true;
  }
  into = value.is_object() && key.of != nullptr ? apply_defaults(value, where, *key.of, out) : value;
  return true;
}

}  // namespace

int index_in(std::string_view text, std::string_view words) noexcept {
  int index = 0;
  for (size_t begin = 0; begin <= words.size(); ++index) {
    size_t end = words.find('|', begin);
    if (end == std::string_view::npos) end = words.size();
    if (words.substr(begin, end - begin) == text) return index;
    begin = end + 1;
  }
  return -1;
}

std::string_view word_at(std::string_view words, size_t index) noexcept {
  while (index-- > 0) words.remove_prefix(words.find('|') + 1);
  return words.substr(0, words.find('|'));
}

json::Value apply_defaults(const json::Value& value, const std::string& where, const Keys& keys, DiagnosticList& out) {
  const ObjectReader in(value, where, keys, out, keys.lenient);
  json::Object members;
  members.reserve(keys.count);
  for (const Key& key : std::span<const Key>(keys)) {
    json::Value member;
    const json::Value* given = in.find(key.name);
    if (given == nullptr || !complete_value(*given, in.at(key.name), key, out, member))
      member = standard_of(key, where, out);
    members.emplace_back(key.name, std::move(member));
  }
  return members;
}

}  // namespace wasmquant::config
