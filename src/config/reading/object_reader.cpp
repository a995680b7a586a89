// Matching members to keys, and the messages for keys, words and patterns that do not fit.
#include "config/reading/object_reader.h"

#include <algorithm>
#include <iterator>

#include "config/match/edit_distance.h"
#include "config/match/name_match.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

uint16_t kinds_of(const json::Value& value) noexcept {
  switch (value.kind()) {
    case json::Kind::null:
      return 0;
    case json::Kind::boolean:
      return kBool;
    case json::Kind::integer:
      return kInteger | kNumber;
    case json::Kind::real:
      return kNumber;
    case json::Kind::string:
      return kString;
    case json::Kind::array:
      return kArray;
    case json::Kind::object:
      return kObject;
  }
  return 0;
}

std::string describe_kinds(uint16_t kinds) {
  static constexpr struct {
    uint16_t kind;
    std::string_view text;
  } kTexts[] = {{kBool, "true or false"}, {kInteger, "an integer"}, {kNumber, "a number"},
                {kString, "a string"},    {kObject, "an object"},   {kArray, "an array"}};
  std::string text;
  for (const auto& [kind, name] : kTexts) {
    if ((kinds & kind) == 0) continue;
    if (!text.empty()) text += " or ";
    text += name;
  }
  return text;
}

}  // namespace

std::string pointer_to(const std::string& where, std::string_view name) {
  return text_of("{}/{}", where, json::pointer_token(name));
}

std::string_view python_name(std::string_view text) noexcept {
  constexpr std::string_view kClass = "<class '";
  if (text.starts_with(kClass)) {
    text.remove_prefix(kClass.size());
    text = text.substr(0, text.find('\''));
  } else if (text.starts_with('<')) {
    text = text.substr(1, text.find(':') - 1);
  }
  return text.substr(text.rfind('.') + 1);
}

int index_of_word(std::string_view text, std::span<const std::string_view> words) noexcept {
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == text) return static_cast<int>(i);
  const std::string_view name = python_name(text);
  for (size_t i = 0; i < words.size(); ++i)
    if (is_same_word(name, words[i])) return static_cast<int>(i);
  return -1;
}

int layer_type_index(std::string_view text, std::span<const std::string_view> types) noexcept {
  return is_same_word(python_name(text), kDense) ? 0 : index_of_word(text, types);
}

void unknown_word(std::string_view word, const std::string& where, std::span<const std::string_view> words,
                  DiagnosticList& out) {
  out.error("value-unknown", where, text_of("{q} is not one of: {}", word, joined(words)),
            did_you_mean(python_name(word), words));
}

namespace {

// For keys that belong to another place or program; empty: a look-alike may be meant.
std::string_view belongs_elsewhere(std::string_view key, const std::string& where) noexcept {
  constexpr std::string_view kOfSpecs[] = {"dtype", "qscheme", "group_size", "ch_axis", "symmetric"};
  if (where.empty() && std::find(std::begin(kOfSpecs), std::end(kOfSpecs), key) != std::end(kOfSpecs))
    return "a spec belongs under \"global_quant_config\": {\"weight\": {…}}";
  if (key.starts_with("bnb_") || key.starts_with("load_in_"))
    return "this is a key of bitsandbytes, which quantizes while it loads; int8, int4_wo_32 and nvfp4 are similar";
  return {};
}

// What a value of the wrong kind was probably meant as.
std::string meant_as(const Key& key, const json::Value& value) {
  if (!value.is_string()) return {};
  const std::string& text = value.as_string();
  if ((key.kinds & kArray) != 0) return text_of("write [{q}]", text);
  const bool is_number = !text.empty() && text.find_first_not_of("-0123456789.") == text.npos;
  if ((key.kinds & (kInteger | kNumber)) != 0 && is_number) return text_of("write {} without quotes", text);
  if ((key.kinds & kBool) != 0 && (text == "true" || text == "false")) return text_of("write {} without quotes", text);
  return {};
}

}  // namespace

void unknown_key(std::string_view key, const std::string& where, std::span<const std::string_view> keys,
                 Severity severity, DiagnosticList& out) {
  const std::string_view elsewhere = belongs_elsewhere(key, where);
  out.add({severity, "key-unknown", pointer_to(where, key), text_of("there is no key {q} here", key),
           !elsewhere.empty() ? std::string(elsewhere)
           : out.full()       ? std::string()  // skips costly hints
                              : did_you_mean(key, keys)});
}

ObjectReader::ObjectReader(const json::Value& value, std::string where, std::span<const Key> keys, DiagnosticList& out,
                           bool lenient)
    : value_(value), where_(std::move(where)), out_(out) {
  if (!value_.is_object()) {
    out_.error("type-invalid", where_, text_of("expected an object, found {}", json::describe(value_.kind())));
    return;
  }
  for (const json::Member& member : value_.members()) {
    const Key* key = nullptr;
    for (const Key& row : keys)
      if (member.first == row.name || (row.old_name != nullptr && member.first == row.old_name)) key = &row;
    if (key == nullptr) {
      List<std::string_view> names;
      for (const Key& row : keys) names.push_back(row.name);
      unknown_key(member.first, where_, std::span(names.data(), names.size()),
                  lenient ? Severity::warning : Severity::error, out_);
      continue;
    }
    if (member.second.is_null()) continue;
    if ((kinds_of(member.second) & key->kinds) == 0) {
      out_.error("type-invalid", pointer_to(where_, member.first),
                 text_of("expected {}, found {}", describe_kinds(key->kinds), json::describe(member.second.kind())),
                 meant_as(*key, member.second));
      continue;
    }
    if (find(key->name) != nullptr) {
      out_.error("key-conflict", pointer_to(where_, member.first),
                 text_of("this is given twice, as {q} and under its old name {q}", key->name, key->old_name),
                 "keep one of them");
      continue;
    }
    found_.push_back({key->name, &member});
  }
  note_without_effect(keys);
}

const json::Value* ObjectReader::find(const char* name) const noexcept {
  for (const Found& found : found_)
    if (std::string_view(found.name) == name) return &found.member->second;
  return nullptr;
}

std::string ObjectReader::at(const char* name) const {
  for (const Found& found : found_)
    if (std::string_view(found.name) == name) return pointer_to(where_, found.member->first);
  return pointer_to(where_, name);
}

int ObjectReader::word(const char* name, std::span<const std::string_view> words) const {
  const json::Value* value = find(name);
  if (value == nullptr) return -1;
  const int index = index_of_word(value->as_string(), words);
  if (index < 0) unknown_word(value->as_string(), at(name), words, out_);
  return index;
}

void ObjectReader::note_without_effect(std::span<const Key> keys) const {
  std::string names;
  for (const Key& key : keys) {
    const json::Value* value = (key.kinds & kNoEffect) != 0 ? find(key.name) : nullptr;
    if (value == nullptr || (value->is_bool() && !value->as_bool() && key.standard == nullptr)) continue;
    if (key.standard != nullptr)
      if (const auto standard = json::parse(key.standard); standard && *standard == *value) continue;
    if (!names.empty()) names += ", ";
    names += key.name;
  }
  if (!names.empty())
    out_.add({Severity::note, "no-effect", where_,
              text_of("has no effect here, because files do not depend on it: {}", names), ""});
}

void ObjectReader::error(DiagnosticCode code, const char* name, const char* message, const char* hint) const {
  out_.error(code, at(name), message, hint);
}
void ObjectReader::error(DiagnosticCode code, const char* name, const std::string& message, const char* hint) const {
  out_.error(code, at(name), message, hint);
}
void ObjectReader::error(DiagnosticCode code, const char* name, const std::string& message,
                         const std::string& hint) const {
  out_.error(code, at(name), message, hint);
}
void ObjectReader::warning(DiagnosticCode code, const char* name, const char* message, const char* hint) const {
  out_.warning(code, at(name), message, hint);
}
void ObjectReader::warning(DiagnosticCode code, const char* name, const std::string& message, const char* hint) const {
  out_.warning(code, at(name), message, hint);
}

void check_pattern(std::string_view pattern, const std::string& where, DiagnosticList& out) {
  if (pattern.empty())
    out.error_in("value-invalid", where, nullptr, nullptr, "expected a layer name or pattern, found an empty string");
  std::string problem;
  if (is_regex(pattern)) Regex(pattern.substr(3), &problem);
  if (!problem.empty())
    out.error_in("pattern-invalid", where, nullptr, "name the layers instead", "{q} cannot be used: {}", pattern,
                 problem);
}

}  // namespace wasmquant::config
