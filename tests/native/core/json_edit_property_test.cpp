// Random JSON in random layouts: an edit changes its member and no other byte.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_edit.h"

using namespace wasmquant;

namespace {

struct Member {
  std::string name;
  size_t key, value, end;  // offsets; `end` is behind the value
};
struct Object {
  std::vector<std::string> path;
  size_t begin, end;  // offsets of the braces; `end` is behind the closing one
  std::vector<Member> members;
};

/// Writes a random text and notes where its objects are.
class RandomText {
 public:
  explicit RandomText(uint32_t seed) : random_(seed), style_(random_() % 4) {
    space();
    object({}, 0);
    space();
  }

  std::string text;
  std::vector<Object> objects;  // that only objects are around

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  std::string scalar() {
    constexpr const char* kScalars[] = {"30.0",
                                        "1e-05",
                                        "12345678901234567890",
                                        "Infinity",
                                        "-Infinity",
                                        "NaN",
                                        "-0",
                                        "1.50",
                                        "-0.0",
                                        "1E+2",
                                        "null",
                                        "true",
                                        "\"\"",
                                        "\"a\\n\"",
                                        "\"\\u00e9 \\\"{[,:]}\\\" \\\\\"",
                                        "\"\xC3\xA9\"",
                                        "\"\\ud83d\\ude00\"",
                                        "9007199254740993"};
    return kScalars[below(std::size(kScalars))];
  }

 private:
  void space() {
    constexpr const char* kMixed[] = {"", " ", "\n", "\r\n\t", "  ", "\n    "};
    if (style_ == 0) text += kMixed[below(std::size(kMixed))];
  }
  void line(size_t depth) {
    space();
    if (style_ > 1) text += (style_ == 2 ? "\n" : "\r\n") + std::string(depth, style_ == 2 ? ' ' : '\t');
  }
  void value(const std::vector<std::string>& path, size_t depth, bool in_array) {
    const uint32_t kind = depth > 4 ? 9 : below(10);
    if (kind < 3) return object(path, depth, in_array);
    if (kind > 4) {
      text += scalar();
      return;
    }
    text += '[';
    for (uint32_t i = 0, count = below(4); i < count; ++i) {
      text += i > 0 ? "," : "";
      line(depth + 1);
      value(path, depth + 1, true);
    }
    line(depth);
    text += ']';
  }
  void object(const std::vector<std::string>& path, size_t depth, bool in_array = false) {
    Object found{path, text.size(), 0, {}};
    text += '{';
    const uint32_t count = below(5);
    for (uint32_t i = 0; i < count; ++i) {
      text += i > 0 ? "," : "";
      line(depth + 1);
      Member member{"k" + std::to_string(i), text.size(), 0, 0};
      text += below(4) == 0 ? "\"\\u006b" + member.name.substr(1) + "\"" : "\"" + member.name + "\"";
      space();
      text += ":";
      text += style_ > 1 ? " " : "";
      space();
      member.value = text.size();
      std::vector<std::string> inner = path;
      inner.push_back(member.name);
      value(inner, depth + 1, in_array);
      member.end = text.size();
      found.members.push_back(member);
      space();
    }
    if (count > 0) line(depth);
    text += '}';
    found.end = text.size();
    if (!in_array) objects.push_back(found);
  }

  std::mt19937 random_;
  uint32_t style_;  // 0: any white space anywhere, 1: none, 2: indented, 3: by tabs and CRLF
};

using Names = std::vector<std::string_view>;

Names path_to(const Object& object, std::string_view name) {
  Names names(object.path.begin(), object.path.end());
  names.push_back(name);
  return names;
}

std::string checked(Result<std::string> edited) {
  if (!edited) FAIL(edited.error().message, " at ", edited.error().where);
  return *edited;
}

/// The tree of a text; null stands for numbers that are not finite, which equal nothing.
json::Value tree(std::string_view text) {
  const auto parsed = json::parse(text, json::kPython);
  if (!parsed) FAIL(parsed.error().message, " at ", parsed.error().where, " in ", text);
  return *json::parse(json::write(*parsed));
}

json::Value& at(json::Value& root, const std::vector<std::string>& path) {
  json::Value* value = &root;
  for (const std::string& name : path)
    for (json::Member& member : value->members())
      if (member.first == name) {
        value = &member.second;
        break;
      }
  return *value;
}

template <class Check>
void for_random_objects(uint32_t first_seed, Check check) {
  for (uint32_t seed = first_seed; seed < first_seed + 1000; ++seed) {
    RandomText random(seed);
    const Object& object = random.objects[random.below(static_cast<uint32_t>(random.objects.size()))];
    CAPTURE(random.text);
    check(random, object);
  }
}

}  // namespace

TEST_CASE("json edit, random texts: a new member is added behind the last, and removing it restores the text") {
  for_random_objects(1, [](RandomText& random, const Object& object) {
    const std::string value = random.below(2) == 0 ? random.scalar() : "{\n  \"x\": [\n    30.0\n  ]\n}";
    const Names path = path_to(object, "new");
    const std::string edited = checked(json::set_member(random.text, path, value));
    json::Value expected = tree(random.text);
    at(expected, object.path).set("new", tree(value));
    REQUIRE(tree(edited) == expected);

    const std::string back = checked(json::remove_member(edited, path));
    const size_t inside = object.members.empty() ? object.begin + 1 : object.members.back().end;
    const size_t behind = object.members.empty() ? object.end - 1 : inside;
    REQUIRE(edited.starts_with(random.text.substr(0, inside)));
    REQUIRE(edited.ends_with(random.text.substr(behind)));
    REQUIRE(back == random.text.substr(0, inside) + random.text.substr(behind));
  });
}

TEST_CASE("json edit, random texts: a value is replaced between its own bytes") {
  for_random_objects(10'001, [](RandomText& random, const Object& object) {
    if (object.members.empty()) return;
    const Member& member = object.members[random.below(static_cast<uint32_t>(object.members.size()))];
    const std::string value = random.below(2) == 0 ? random.scalar() : "[\n  {\n    \"x\": 1e-05\n  },\n  null\n]";
    const std::string edited = checked(json::set_member(random.text, path_to(object, member.name), value));
    json::Value expected = tree(random.text);
    at(expected, object.path).set(member.name, tree(value));
    REQUIRE(tree(edited) == expected);
    const std::string before = random.text.substr(0, member.value), behind = random.text.substr(member.end);
    REQUIRE(edited.size() >= before.size() + behind.size());
    REQUIRE(edited.starts_with(before));
    REQUIRE(edited.ends_with(behind));
  });
}

TEST_CASE("json edit, random texts: a removed member leaves the bytes of the others") {
  for_random_objects(20'001, [](RandomText& random, const Object& object) {
    if (object.members.empty()) return;
    const Member& gone = object.members[random.below(static_cast<uint32_t>(object.members.size()))];
    const std::string edited = checked(json::remove_member(random.text, path_to(object, gone.name)));
    REQUIRE(edited.starts_with(random.text.substr(0, object.begin + 1)));
    REQUIRE(edited.ends_with(random.text.substr(object.end - 1)));
    std::string kept;
    size_t from = object.begin + 1, left = 0;
    for (const Member& member : object.members) {
      if (member.name == gone.name) continue;
      kept = random.text.substr(member.key, member.end - member.key);
      from = edited.find(kept, from);
      REQUIRE(from != edited.npos);
      from += kept.size();
      ++left;
    }
    json::Value root = tree(edited);
    REQUIRE(at(root, object.path).members().size() == left);
    REQUIRE(at(root, object.path).find(gone.name) == nullptr);
  });
}
