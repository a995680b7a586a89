// json::Value from events: a stack of open containers; duplicate keys are handled when an object closes.
#include "core/json.h"

#include <cstddef>

#include "core/json_events.h"
#include "core/json_tree.h"
#include "core/list.h"
#include "core/message.h"
#include "core/order.h"

namespace wasmquant::json {
namespace {

Value number_of(const Event& event) {
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (event.is_negative) return Value(static_cast<int64_t>(~event.magnitude + 1));  // at most 2^63: fits
  if (event.magnitude < kLimit) return Value(static_cast<int64_t>(event.magnitude));
  return Value(static_cast<double>(event.magnitude));
}

// One member per name, at the position of the first and with the value of the last, like Python's dict.
void keep_last(Object& members) {
  const auto name_of = [&](uint32_t i) -> std::string_view { return members[i].first; };
  const List<uint32_t> order = sorted_by_name(members.size(), name_of);
  List<bool> is_repeated(members.size());
  for (size_t i = 1, first = 0; i < order.size(); ++i) {
    if (members[order[i]].first != members[order[first]].first) {
      first = i;
      continue;
    }
    is_repeated[order[i]] = true;
    members[order[first]].second = std::move(members[order[i]].second);
  }
  Object kept;
  for (size_t i = 0; i < members.size(); ++i)
    if (!is_repeated[i]) kept.push_back(std::move(members[i]));
  members = std::move(kept);
}

}  // namespace

Status TreeBuilder::on(const Event& event) {
  switch (event.kind) {
    case EventKind::null:
      add(nullptr);
      break;
    case EventKind::boolean:
      add(event.boolean);
      break;
    case EventKind::integer:
      add(number_of(event));
      break;
    case EventKind::real:
      add(event.real);
      break;
    case EventKind::string:
      add(event.text);
      break;
    case EventKind::key:
      open_.back()->members().emplace_back(event.text, Value());
      break;
    case EventKind::object_begin:
      open_.push_back(add(Object()));
      break;
    case EventKind::array_begin:
      open_.push_back(add(Array()));
      break;
    case EventKind::object_end: {
      // A hostile object may have millions of keys, so it is sorted once rather than searched per key.
      Object& members = open_.back()->members();
      const auto duplicate =
          first_repeated(members.size(), [&](uint32_t i) -> std::string_view { return members[i].first; });
      if (duplicate && grammar_ == Grammar::strict) return duplicate_error(*duplicate);
      if (duplicate) keep_last(members);
      open_.pop_back();
      break;
    }
    case EventKind::array_end:
      open_.pop_back();
      break;
  }
  return {};
}

// Pointers into a container stay valid while its last child is open: it grows only after the child has closed.
Value* TreeBuilder::add(Value value) {
  if (open_.empty()) return &(root_ = std::move(value));
  Value& parent = *open_.back();
  if (parent.is_array()) return &parent.items().emplace_back(std::move(value));
  return &(parent.members().back().second = std::move(value));
}

Error TreeBuilder::duplicate_error(size_t index) const {
  std::string pointer;
  for (size_t i = 0; i < open_.size(); ++i) {
    const Value& container = *open_[i];
    const bool is_last = i + 1 == open_.size();
    pointer += '/';
    if (container.is_array())
      append_number(pointer, uint64_t{container.items().size() - 1});
    else
      pointer += pointer_token(is_last ? container.members()[index].first : container.members().back().first);
  }
  return error_at(ErrorCode::json_invalid, pointer, "this key appears twice in its object; keep one");
}

Result<Value> parse(std::string_view text, const Limits& limits) {
  TreeBuilder builder(limits.grammar);
  TRY_VOID(parse_events(text, limits, builder));
  return std::move(builder.root());
}

std::string_view describe(Kind kind) noexcept {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a real number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "a value";
}

std::string pointer_token(std::string_view name) {
  std::string token;
  for (const char c : name) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

}  // namespace wasmquant::json
