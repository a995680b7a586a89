// A path and any text: set_member and remove_member must not crash, must do to the text what they say of its tree, and
// must leave the bytes around. Input: names, one a line; an empty line; the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json_edit.h"
#include "core/list.h"
#include "require.h"

using namespace wasmquant;

namespace {

constexpr size_t kMaxNames = 8;

/// The names; `text` is what follows them.
List<std::string_view> names_of(std::string_view& text) {
  List<std::string_view> names;
  while (names.size() < kMaxNames) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() && !names.empty()) break;
    names.push_back(line);
    if (text.empty()) break;
  }
  return names;
}

const json::Value* find(const json::Value& root, json::Path path) {
  const json::Value* value = &root;
  for (const std::string_view name : path) {
    if (value == nullptr || !value->is_object()) return nullptr;
    value = value->find(name);
  }
  return value;
}

// NaN equals nothing, so trees are compared as texts, where what is not finite is null.
std::string tree_of(std::string_view text) {
  const auto parsed = json::parse(text, json::kPython);
  require(static_cast<bool>(parsed));
  return json::write(*parsed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const List<std::string_view> names = names_of(text);
  if (!std::all_of(names.begin(), names.end(), json::is_utf8)) return 0;  // a name could not be found again
  const json::Path path(names.data(), names.size());
  const json::Limits limits{.max_depth = 32, .max_nodes = 10'000, .grammar = json::Grammar::python};
  constexpr std::string_view kValue = "{\n  \"x\": [\n    30.0\n  ]\n}";

  const auto parsed = json::parse(text, limits);
  const auto edited = json::set_member(text, path, kValue, limits);
  const auto removed = json::remove_member(text, path, limits);
  if (!parsed || !parsed->is_object()) {
    require(!edited && !removed);
    return 0;
  }
  require(static_cast<bool>(removed));
  const auto without = json::parse(*removed, json::kPython);
  require(without && find(*without, path) == nullptr);
  if (find(*parsed, path) == nullptr) require(*removed == text);
  if (!edited) return 0;

  const auto with = json::parse(*edited, json::kPython);
  require(static_cast<bool>(with));
  const json::Value* const found = find(*with, path);
  require(found != nullptr && json::write(*found) == R"({"x":[30.0]})");
  if (find(*parsed, path) != nullptr) return 0;

  // A member that was not there: every byte of the text is still there, but for white space in an empty object.
  const auto same = std::mismatch(text.begin(), text.end(), edited->begin(), edited->end());
  const auto before = static_cast<size_t>(same.first - text.begin());
  const size_t rest = text.size() - before;
  const bool is_kept = edited->size() > text.size() && edited->ends_with(text.substr(before));
  if (!is_kept) {
    const size_t behind = text.substr(before).find_first_not_of(" \t\r\n");
    const bool replaces_null = text.substr(before).starts_with("null");
    require(replaces_null || (behind < rest && edited->ends_with(text.substr(before + behind))));
  }
  const auto back = json::remove_member(*edited, path, json::kPython);
  require(static_cast<bool>(back));
  if (path.size() == 1) require(tree_of(*back) == tree_of(text));
  return 0;
}
