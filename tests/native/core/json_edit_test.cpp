// Edits of JSON text keep all that they do not change.
#include "core/json_edit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "core/list.h"

using namespace wasmquant;

namespace {

List<std::string_view> names_of(std::string_view dotted) {
  List<std::string_view> names;
  for (size_t dot = 0; dot != dotted.npos; dotted.remove_prefix(dot == dotted.npos ? 0 : dot + 1)) {
    dot = dotted.find('.');
    names.push_back(dotted.substr(0, dot));
  }
  return names;
}

std::string set(std::string_view text, std::string_view path, std::string_view value) {
  const List<std::string_view> names = names_of(path);
  const auto edited = json::set_member(text, {names.data(), names.size()}, value);
  if (!edited) FAIL(edited.error().message, " at ", edited.error().where);
  CHECK(json::parse(*edited, json::kPython));
  return *edited;
}

std::string removed(std::string_view text, std::string_view path) {
  const List<std::string_view> names = names_of(path);
  const auto edited = json::remove_member(text, {names.data(), names.size()});
  if (!edited) FAIL(edited.error().message, " at ", edited.error().where);
  CHECK(json::parse(*edited, json::kPython));
  return *edited;
}

void json_edit_check_refused(std::string_view text, std::string_view path, std::string_view where,
                             std::string_view message) {
  CAPTURE(text);
  const List<std::string_view> names = names_of(path);
  const auto edited = json::set_member(text, {names.data(), names.size()}, "1");
  REQUIRE_FALSE(edited);
  CHECK(edited.error().code == ErrorCode::json_invalid);
  CHECK(edited.error().where == where);
  CHECK_MESSAGE(edited.error().message.find(message) != std::string::npos, edited.error().message);
}

constexpr std::string_view kBlock = "{\n  \"bits\": [\n    4,\n    8\n  ],\n  \"n\": {}\n}";

}  // namespace

TEST_CASE("json edit: numbers, constants and escapes around a member keep their spelling") {
  const std::string text =
      "{\n  \"cap\": 30.0,\n  \"big\": 12345678901234567890,\n  \"limit\": [0.0, Infinity, -Infinity, NaN],\n"
      "  \"eps\": 1e-05,\n  \"name\": \"\\u00e9 \\/ \xC3\xA9\",\n  \"tied\": true\n}\n";
  std::string expected = text;
  expected.replace(expected.find("true"), 4, "false");
  CHECK(set(text, "tied", "false") == expected);
  expected = text;
  expected.replace(expected.find(",\n  \"tied\": true"), 16, "");
  CHECK(removed(text, "tied") == expected);
}

TEST_CASE("json edit: a new member has the indentation of its object") {
  CHECK(set("{\n    \"a\": 1\n}\n", "q", kBlock) ==
        "{\n    \"a\": 1,\n    \"q\": {\n        \"bits\": [\n            4,\n            8\n        ],\n"
        "        \"n\": {}\n    }\n}\n");
  CHECK(set("{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}", "a.q", kBlock) ==
        "{\n\t\"a\": {\n\t\t\"b\": 1,\n\t\t\"q\": {\n\t\t\t\"bits\": [\n\t\t\t\t4,\n\t\t\t\t8\n\t\t\t],\n"
        "\t\t\t\"n\": {}\n\t\t}\n\t}\n}");
  CHECK(set("{\n\"a\": 1\n}", "q", kBlock) == "{\n\"a\": 1,\n\"q\": {\n\"bits\": [\n4,\n8\n],\n\"n\": {}\n}\n}");
  CHECK(set("  {\n    \"a\": 1\n  }", "q", "{\n  \"b\": 2\n}") ==
        "  {\n    \"a\": 1,\n    \"q\": {\n      \"b\": 2\n    }\n  }");
}

TEST_CASE("json edit: line endings are kept") {
  CHECK(set("{\r\n  \"a\": 1\r\n}\r\n", "b", "[\n  2\n]") == "{\r\n  \"a\": 1,\r\n  \"b\": [\r\n    2\r\n  ]\r\n}\r\n");
  CHECK(set("{\n\n  \"a\": 1\n\n}", "b", "2") == "{\n\n  \"a\": 1,\n  \"b\": 2\n\n}");
}

TEST_CASE("json edit: an object on one line stays on one line") {
  CHECK(set(R"({"a":1})", "q", kBlock) == R"({"a":1,"q":{"bits":[4,8],"n":{}}})");
  CHECK(set(R"({"a": 1})", "q", kBlock) == R"({"a": 1, "q": {"bits": [4, 8], "n": {}}})");
  CHECK(set(R"({ "a" : 1,  "b" : 2 })", "q", "3") == R"({ "a" : 1,  "b" : 2,  "q" : 3 })");
  CHECK(set("{\n  \"a\": {\"b\": 1},\n  \"c\": 2\n}", "a.d", "3") ==
        "{\n  \"a\": {\"b\": 1, \"d\": 3},\n  \"c\": 2\n}");
  CHECK(set(R"({"a":1})", "q", R"("x: y, \" z")") == R"({"a":1,"q":"x: y, \" z"})");
}

TEST_CASE("json edit: empty objects are filled in the layout around them") {
  CHECK(set("{}\n", "a", "1") == "{\n  \"a\": 1\n}\n");
  CHECK(set(" { } ", "a", "1") == " {\n   \"a\": 1\n } ");
  CHECK(set("{\n    \"a\": {},\n    \"b\": 1\n}", "a.c", "2") ==
        "{\n    \"a\": {\n        \"c\": 2\n    },\n    \"b\": 1\n}");
  CHECK(set(R"({"a": {}, "b": 1})", "a.c", "2") == R"({"a": {"c": 2}, "b": 1})");
}

TEST_CASE("json edit: a missing path is created") {
  CHECK(set("{}", "a.b.c", "[\n  1\n]") ==
        "{\n  \"a\": {\n    \"b\": {\n      \"c\": [\n        1\n      ]\n    }\n  }\n}");
  CHECK(set("{\n  \"a\": null,\n  \"z\": 0\n}", "a.b", "1") == "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"z\": 0\n}");
  CHECK(set(R"({"a":1})", "b.c", "2") == R"({"a":1,"b":{"c":2}})");
}

TEST_CASE("json edit: names are compared unescaped and written as JSON strings") {
  CHECK(set(R"({"\u0061":1})", "a", "2") == R"({"\u0061":2})");
  CHECK(set(R"({"a":1})", "tab\there \"and\" \\", "2") == R"({"a":1,"tab\there \"and\" \\":2})");
}

TEST_CASE("json edit: removing takes the comma and the space that belong to a member") {
  const std::string text = "{\n  \"a\": 1,\n  \"b\": {\"x\": [1, {}]} ,\n\n  \"c\": 3\n}";
  CHECK(removed(text, "a") == "{\n  \"b\": {\"x\": [1, {}]} ,\n\n  \"c\": 3\n}");
  CHECK(removed(text, "b") == "{\n  \"a\": 1,\n  \"c\": 3\n}");
  CHECK(removed(text, "c") == "{\n  \"a\": 1,\n  \"b\": {\"x\": [1, {}]}\n}");
  CHECK(removed(text, "b.x") == "{\n  \"a\": 1,\n  \"b\": {} ,\n\n  \"c\": 3\n}");
  CHECK(removed("{ \"a\": 1 }", "a") == "{}");
  CHECK(removed(text, "d") == text);
  CHECK(removed(text, "a.d") == text);
  CHECK(removed(text, "d.a") == text);
}

TEST_CASE("json edit: of members of one name the last is set, and all are removed") {
  const std::string text = R"({"a":1,"b":{"c":1},"a":2,"b":{"c":2},"d":0})";
  CHECK(set(text, "a", "9") == R"({"a":1,"b":{"c":1},"a":9,"b":{"c":2},"d":0})");
  CHECK(set(text, "b.c", "9") == R"({"a":1,"b":{"c":1},"a":2,"b":{"c":9},"d":0})");
  CHECK(removed(text, "a") == R"({"b":{"c":1},"b":{"c":2},"d":0})");
  CHECK(removed(text, "b") == R"({"a":1,"a":2,"d":0})");
  CHECK(removed(R"({"a":1,"a":2})", "a") == "{}");
}

TEST_CASE("json edit: a value that is not an object is refused with its place") {
  json_edit_check_refused("{\"a\": 1,}", "b", "byte 8", "expected a key in quotes, found '}'");
  json_edit_check_refused("{\"a\": Inf}", "b", "byte 6", "expected a JSON value, found 'I'");
  json_edit_check_refused("{\"a\": 1", "b", "byte 7", "found the end of the text");
  json_edit_check_refused(" [1]", "b", "byte 1", "expected a JSON object, found an array");
  json_edit_check_refused("  12", "b", "byte 2", "expected a JSON object, found an integer");
  json_edit_check_refused(R"({"a": {"b/c": 30.0}})", "a.b/c.d", "/a/b~1c",
                          "expected an object with the member \"d\", found a real number");
  json_edit_check_refused(R"({"a": []})", "a.b", "/a", "found an array");
  const std::string_view path[] = {"a"};
  CHECK(json::remove_member("[]", path).error().where == "byte 0");
  CHECK(json::set_member("{\"a\": NaN}", path, "1", {}).error().where == "byte 6");
}
