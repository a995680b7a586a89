// Scans the text with parse_events, object by object down the path; members are identified by their offsets.
#include "core/json_edit.h"

#include <algorithm>

#include "core/json_events.h"
#include "core/list.h"
#include "core/message.h"

namespace wasmquant::json {
namespace {

constexpr std::string_view kWhite = " \t\r\n";

/// One member by its offsets in the text; ends are exclusive.
struct MemberSpan {
  size_t key = 0, key_end = 0;  // of the quoted name
  size_t value = 0, end = 0;
  EventKind kind = EventKind::null;  // of the value
  bool is_wanted = false;            // has the name that was looked for
};

struct ObjectSpan {
  size_t begin = 0, end = 0;  // the brackets are at `begin` and `end - 1`
  List<MemberSpan> members;
};

/// Finds the members of the outermost object. Event offsets refer to `text`, even if only part of it is read.
class ObjectScanner final : public Listener {
 public:
  ObjectScanner(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Status on(const Event& event) override {
    if (event.depth > 1) return {};
    const auto byte = static_cast<size_t>(event.byte);
    const bool is_end = event.kind == EventKind::object_end || event.kind == EventKind::array_end;
    if (event.depth == 0) {
      if (event.kind == EventKind::object_begin)
        object_.begin = byte;
      else if (event.kind == EventKind::object_end)
        object_.end = byte + 1;
      else
        return error_at(ErrorCode::json_invalid, text_of("byte {}", text_.find_first_not_of(kWhite)),
                        "expected a JSON object, found {}", describe(event.kind));
    } else if (event.kind == EventKind::key) {
      const size_t from = object_.members.empty() ? object_.begin + 1 : object_.members.back().end;
      MemberSpan& member = object_.members.emplace_back();
      member.key = text_.find('"', from);  // after a comma and white space
      member.key_end = byte;
      member.is_wanted = event.text == name_;
    } else {
      MemberSpan& member = object_.members.back();
      member.end = is_end ? byte + 1 : byte;
      if (is_end) return {};
      member.kind = event.kind;
      member.value = text_.find_first_not_of(kWhite, text_.find(':', member.key_end) + 1);
    }
    return {};
  }

  ObjectSpan& object() noexcept { return object_; }

 private:
  std::string_view text_, name_;
  ObjectSpan object_;
};

/// The layout of an object's members.
struct Layout {
  bool is_lined = true;  // each on a separate line
  std::string_view newline = "\n";
  std::string_view indent;       // of the members' lines
  size_t levels = 0;             // indentation in units beyond `indent`
  std::string_view unit = "  ";  // one level of indentation
  std::string_view colon = ": ";
  std::string_view space = " ";  // after a comma, if all are on one line

  /// Begins a line, `more` levels deeper.
  void append_line(std::string& out, size_t more = 0) const {
    if (!is_lined) return;
    out += newline;
    out += indent;
    for (size_t i = 0; i < levels + more; ++i) out += unit;
  }
};

/// The layout of an object as seen from `member`; `outer` is that of the surrounding object.
Layout layout_of(std::string_view text, const MemberSpan& member, const Layout& outer) {
  Layout out = outer;
  const size_t before = text.find_last_not_of(kWhite, member.key - 1);
  const std::string_view lead = text.substr(before + 1, member.key - before - 1);
  const std::string_view colon = text.substr(member.key_end, member.value - member.key_end);
  if (colon.find('\n') == colon.npos) out.colon = colon;
  const size_t end_of_line = lead.rfind('\n');
  out.is_lined = end_of_line != lead.npos;
  if (out.is_lined) {
    out.newline = end_of_line > 0 && lead[end_of_line - 1] == '\r' ? "\r\n" : "\n";
    out.indent = lead.substr(end_of_line + 1);
    out.levels = 0;
  } else {
    out.space = text[before] == ',' ? lead : out.colon.size() > 1 ? " " : "";
  }
  return out;
}

/// One level of indentation, from the outermost object's members.
std::string_view unit_of(const Layout& members, const Layout& outer) {
  const bool is_indented = members.is_lined && members.indent.starts_with(outer.indent);
  return is_indented ? members.indent.substr(outer.indent.size()) : outer.unit;
}

/// Appends a text from write(…, 2) in this layout, `levels` deeper than written.
void append_laid_out(std::string& out, std::string_view value, const Layout& layout, size_t levels) {
  bool is_string = false;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '\n') {
      const size_t end = std::min(value.find_first_not_of(' ', i + 1), value.size());
      if (!layout.is_lined && out.back() == ',') out += layout.space;
      layout.append_line(out, levels + (end - i - 1) / 2);
      i = end - 1;
      continue;
    }
    out += c;
    if (c == '"')
      is_string = !is_string;
    else if (c == '\\')
      out += value[++i];
    else if (c == ':' && !is_string && layout.colon.size() == 1)
      ++i;
  }
}

/// Where a path ends in a text: in its object, or in the deepest object on the path that exists.
struct Place {
  ObjectSpan object;
  const MemberSpan* member = nullptr;  // path[depth] in `object`, the last of that name, or null
  size_t depth = 0;
  Layout outer, layout;  // around `object`, and of its members
};

Result<Place> find_place(std::string_view text, Path path, const Limits& limits) {
  Place place;
  for (std::string_view rest = text;; ++place.depth) {
    ObjectScanner scanner(text, path[place.depth]);
    TRY_VOID(parse_events(rest, limits, scanner, static_cast<size_t>(rest.data() - text.data())));
    place.object = std::move(scanner.object());
    const List<MemberSpan>& members = place.object.members;
    if (place.depth == 0) {
      const std::string_view before = text.substr(0, place.object.begin);
      place.outer.indent = before.substr(before.rfind('\n') + 1);
      if (!members.empty()) place.outer.unit = unit_of(layout_of(text, members.front(), place.outer), place.outer);
    }
    place.layout = place.outer;
    ++place.layout.levels;
    if (!members.empty()) place.layout = layout_of(text, members.back(), place.outer);
    place.member = nullptr;
    for (const MemberSpan& member : members)
      if (member.is_wanted) place.member = &member;
    if (place.depth + 1 == path.size() || place.member == nullptr || place.member->kind != EventKind::object_begin)
      return place;
    place.outer = layout_of(text, *place.member, place.outer);
    rest = text.substr(place.member->value, place.member->end - place.member->value);
  }
}

/// Appends `value`, nested in objects with the last names of the path.
void append_wrapped(std::string& out, Path names, std::string_view value, const Layout& layout) {
  for (size_t i = 0; i < names.size(); ++i) {
    out += '{';
    layout.append_line(out, i + 1);
    append_quoted(out, names[i]);
    out += layout.colon;
  }
  append_laid_out(out, value, layout, names.size());
  for (size_t i = names.size(); i-- > 0;) {
    layout.append_line(out, i);
    out += '}';
  }
}

}  // namespace

Result<std::string> set_member(std::string_view text, Path path, std::string_view value, const Limits& limits) {
  TRY(place, find_place(text, path, limits));
  const MemberSpan* const member = place.member;
  const Path made = path.subspan(place.depth + 1);
  if (member != nullptr && !made.empty() && member->kind != EventKind::null) {
    std::string pointer;
    for (const std::string_view name : path.first(place.depth + 1)) {
      pointer += '/';
      pointer += pointer_token(name);
    }
    return error_at(ErrorCode::json_invalid, pointer, "expected an object with the member {q}, found {}", made.front(),
                    describe(member->kind));
  }
  const List<MemberSpan>& members = place.object.members;
  const bool is_first = members.empty();
  const Layout& layout = place.layout;
  if (member != nullptr) {
    std::string out(text.substr(0, member->value));
    append_wrapped(out, made, value, layout_of(text, *member, place.outer));
    return out += text.substr(member->end);
  }
  const size_t at = is_first ? place.object.begin + 1 : members.back().end;
  std::string out(text.substr(0, at));
  if (!is_first) out += ',';
  if (!is_first && !layout.is_lined) out += layout.space;
  layout.append_line(out);
  append_quoted(out, path[place.depth]);
  out += layout.colon;
  append_wrapped(out, made, value, layout);
  if (is_first) place.outer.append_line(out);
  return out += text.substr(is_first ? place.object.end - 1 : at);
}

Result<std::string> remove_member(std::string_view text, Path path, const Limits& limits) {
  TRY(place, find_place(text, path, limits));
  const List<MemberSpan>& members = place.object.members;
  if (place.member == nullptr || place.depth + 1 < path.size()) return std::string(text);
  // Removes a member with the text up to the next one; for the last members, the text before them.
  size_t at = place.object.begin + 1, next = 0;
  std::string out(text.substr(0, at));
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].is_wanted) continue;
    out += text.substr(at, members[next].key - at);
    out += text.substr(members[i].key, members[i].end - members[i].key);
    at = members[i].end;
    next = i + 1;
  }
  return out += text.substr(next == 0 ? place.object.end - 1 : members.back().end);
}

}  // namespace wasmquant::json
