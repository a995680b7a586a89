// JSON: values, limits, and where an error is.
#include "core/json.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/json_events.h"

using namespace wasmquant;
using namespace std::string_literals;

namespace {

struct Refused {
  std::string text, where, message_contains;
};

void json_check_refused(const Refused& refused, const json::Limits& limits = {}) {
  CAPTURE(refused.text.substr(0, 200));
  const auto parsed = json::parse(refused.text, limits);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == ErrorCode::json_invalid);
  CHECK(parsed.error().where == refused.where);
  CHECK_MESSAGE(parsed.error().message.find(refused.message_contains) != std::string::npos, parsed.error().message);
}

json::Value parsed(std::string_view text) {
  auto result = json::parse(text);
  if (!result) FAIL(result.error().message, " at ", result.error().where);
  return *result;
}

std::string encode_utf8(uint32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

}  // namespace

TEST_CASE("json: kinds, order and escapes") {
  const auto value = parsed(" {\"z\": [null, true, -3, 2.5e-1, \"\\u0061\\n\\ud83d\\ude00\"], \"a\": {}}\r\n\t");
  REQUIRE(value.is_object());
  REQUIRE(value.members().size() == 2);
  CHECK(value.members()[0].first == "z");
  const auto& items = value.find("z")->items();
  REQUIRE(items.size() == 5);
  CHECK(items[0].is_null());
  CHECK(items[1].as_bool());
  CHECK(items[2] == json::Value(-3));
  CHECK(items[3] == json::Value(0.25));
  CHECK(items[4].as_string() == "a\n\xF0\x9F\x98\x80");
  CHECK(value.find("a")->is_object());
  CHECK(value.find("b") == nullptr);
}

TEST_CASE("json: a string may hold NUL by escape") { CHECK(parsed("\"a\\u0000b\"").as_string() == "a\0b"s); }

TEST_CASE("json: integers end at the range of int64") {
  CHECK(parsed("9223372036854775807") == json::Value(std::numeric_limits<int64_t>::max()));
  CHECK(parsed("-9223372036854775808") == json::Value(std::numeric_limits<int64_t>::min()));
  CHECK(parsed("9223372036854775808") == json::Value(9223372036854775808.0));
  CHECK(parsed("-9223372036854775809").kind() == json::Kind::real);
  CHECK(parsed("18446744073709551616") == json::Value(18446744073709551616.0));
  CHECK(parsed("1.0").kind() == json::Kind::real);
  CHECK(parsed("1e2") == json::Value(100.0));
  CHECK(parsed("-0") == json::Value(0));
  CHECK(std::signbit(parsed("-0.0").as_number()));
  CHECK(parsed("2147483648") == json::Value(int64_t{2147483648}));
  CHECK(parsed("-2147483648") == json::Value(int64_t{-2147483648}));
  CHECK(parsed("1e-400") == json::Value(0.0));
}

TEST_CASE("json: syntax errors say where and what") {
  const std::vector<Refused> cases = {
      {"", "byte 0", "expected a JSON value, found the end"},
      {"  ", "byte 2", "the end of the text"},
      {"{", "byte 1", "expected a key in quotes, found the end"},
      {"{\"a\" 1}", "byte 5", "expected ':'"},
      {"{\"a\":1,}", "byte 7", "expected a key in quotes, found '}'"},
      {"{\"a\":1 \"b\":2}", "byte 7", "expected ',' or '}'"},
      {"{a:1}", "byte 1", "expected a key in quotes, found 'a'"},
      {"[1,]", "byte 3", "expected a JSON value, found ']'"},
      {"[1 2]", "byte 3", "expected ',' or ']'"},
      {"[1", "byte 2", "found the end"},
      {"1 2", "byte 2", "expected nothing after"},
      {"{}\0"s, "byte 2", "expected nothing after the JSON value, found byte 0x00"},
      {"{}\0{}"s, "byte 2", "byte 0x00"},
      {"1 \0"s, "byte 2", "byte 0x00"},
      {"\0"s, "byte 0", "byte 0x00"},
      {"\"abc", "byte 4", "not closed"},
      {"\"a\0b\""s, "byte 2", "not closed"},
      {"\"a\nb\"", "byte 2", "control character"},
      {"\"\\x\"", "byte 1", "unknown escape"},
      {"\"\\u12g4\"", "byte 1", "four hexadecimal digits"},
      {"\"\\ud800\"", "byte 1", "lone surrogate"},
      {"\"\\ud800\\u0041\"", "byte 1", "lone surrogate"},
      {"\"\\udc00\"", "byte 8", "lone surrogate"},
      {"{\"\\udfff\":1}", "byte 9", "lone surrogate"},
      {"\"\\udc00\\ud800\"", "byte 7", "lone surrogate"},
      {"\"\xff\"", "byte 1", "not valid UTF-8"},
      {"\"\xc0\xaf\"", "byte 1", "not valid UTF-8"},
      {"\"\xed\xa0\x80\"", "byte 1", "not valid UTF-8"},
      {"\"\xf4\x90\x80\x80\"", "byte 1", "not valid UTF-8"},
      {"\"\xe2\x82\"", "byte 1", "not valid UTF-8"},
      {"\xef\xbb\xbf{}", "byte 0", "byte 0xef"},
      {"1e999", "byte 0", "too large"},
      {"-1e999", "byte 0", "too large"},
      {"1" + std::string(400, '0'), "byte 0", "too large"},
      {"[1,1e309]", "byte 3", "too large"},
      {"1.7976931348623159e308", "byte 0", "too large"},
      {"1.", "byte 2", "digits after its point"},
      {"1e+", "byte 3", "digits in its exponent"},
      {"01", "byte 1", "expected nothing after"},
      {"+1", "byte 0", "found '+'"},
      {".5", "byte 0", "found '.'"},
      {"-", "byte 1", "the end of the text"},
      {"NaN", "byte 0", "found 'N'"},
      {"Infinity", "byte 0", "found 'I'"},
      {"-Infinity", "byte 1", "found 'I'"},
      {"nul", "byte 3", "the end of the text"},
      {"True", "byte 0", "found 'T'"},
      {"'a'", "byte 0", "found '''"},
      {"/**/1", "byte 0", "found '/'"},
      {"[1]]", "byte 3", "expected nothing after"},
      {"}", "byte 0", "expected a JSON value"},
      {"[}", "byte 1", "expected a JSON value"},
  };
  for (const auto& refused : cases) json_check_refused(refused);
}

TEST_CASE("json: duplicate keys are refused after unescaping, with a pointer") {
  json_check_refused({R"({"a":1,"a":1})", "/a", "twice"});
  json_check_refused({R"({"a":1,"\u0061":2})", "/a", "twice"});
  json_check_refused({R"({"x":[0,{"k/~":1,"b":2,"k/~":3}]})", "/x/1/k~1~0", "twice"});
  json_check_refused({R"([[],{"":0,"":0}])", "/1/", "twice"});
  CHECK(parsed(R"({"a":{"a":{"a":1}},"A":2,"":3})").members().size() == 3);
}

TEST_CASE("json: of several duplicates the first in the text is named") {
  json_check_refused({R"({"b":1,"a":1,"c":2,"a":3,"b":4})", "/a", "twice"});
}

TEST_CASE("json: duplicates are found among hundreds of thousands of keys") {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += "\"model.layers.weight." + std::to_string(i) + "\":0,";
  json_check_refused({text + "\"model.layers.weight.7\":0}", "/model.layers.weight.7", "twice"});
  CHECK(parsed(text + "\"last\":0}").members().size() == 300'001);
}

TEST_CASE("json: limits are exact") {
  const json::Limits limits{.max_bytes = 20, .max_depth = 3, .max_nodes = 5};
  CHECK(json::parse("[[[1]]]", limits));
  json_check_refused({"[[[[1]]]]", "byte 3", "nested deeper than 3"}, limits);
  json_check_refused({"[{\"a\":[{}]}]", "byte 7", "nested deeper than 3"}, limits);
  CHECK(json::parse("[1,2,3,4]", limits));
  json_check_refused({"[1,2,3,4,5]", "byte 10", "more than 5 values"}, limits);
  CHECK(json::parse("\"" + std::string(18, 'x') + "\"", limits));
  json_check_refused({"\"" + std::string(19, 'x') + "\"", "byte 0", "has 21 bytes; the limit is 20"}, limits);
}

TEST_CASE("json: deep text ends at the limit, not in the stack") {
  json_check_refused({std::string(1'000'000, '['), "byte 64", "nested deeper than 64"});
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
  const auto result = json::parse(text);
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("nested deeper") != std::string::npos);
}

TEST_CASE("json: write is compact or laid out like JSON.stringify") {
  const auto value = parsed(R"({"a":[],"b":{},"c":[1,{"d":null}],"e":true,"f":1.0,"g":-0.0,"h":1e300})");
  CHECK(json::write(value) == R"({"a":[],"b":{},"c":[1,{"d":null}],"e":true,"f":1.0,"g":-0.0,"h":1e300})");
  CHECK(json::write(parsed(R"({"a":[],"c":[1,{"d":2}]})"), 2) ==
        "{\n  \"a\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": 2\n    }\n  ]\n}");
  CHECK(json::write(json::Value(std::numeric_limits<double>::infinity())) == "null");
  CHECK(json::write(json::Value(std::numeric_limits<double>::quiet_NaN())) == "null");
  CHECK(json::write(json::Value(std::numeric_limits<int64_t>::min())) == "-9223372036854775808");
  CHECK(json::write(json::Value(0.1)) == "0.1");
  CHECK(json::write(json::Value(1e20)) == "100000000000000000000.0");
  CHECK(json::write(json::Value(std::numeric_limits<double>::max())) == "1.7976931348623157e308");
  CHECK(json::write(json::Value(5e-324)) == "5e-324");
}

TEST_CASE("json: random doubles survive write and parse bit for bit") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double v = std::bit_cast<double>(random());
    if (!std::isfinite(v)) continue;
    const auto text = json::write(json::Value(v));
    const auto back = parsed(text);
    CAPTURE(text);
    REQUIRE(back.kind() == json::Kind::real);
    REQUIRE(std::bit_cast<uint64_t>(back.as_number()) == std::bit_cast<uint64_t>(v));
  }
}

TEST_CASE("json: decimal text is read correctly rounded") {
  // 2^53 + 1 lies between two doubles; one more digit decides. The third is the classic halfway case of strtod.
  CHECK(parsed("9007199254740993.0").as_number() == 9007199254740992.0);
  CHECK(parsed("9007199254740993.00000000000000000001").as_number() == 9007199254740994.0);
  CHECK(std::bit_cast<uint64_t>(parsed("2.2250738585072011e-308").as_number()) == 0x000fffffffffffffu);
  const std::string zeros(400, '0');
  CHECK(parsed("0." + zeros + "1e401").as_number() == 1.0);
  CHECK(parsed("0." + zeros + "1").as_number() == 0.0);
  CHECK(parsed("0." + zeros + "1e77").as_number() == 0.0);
  CHECK(parsed("0." + zeros + "1e78").as_number() == 1e-323);
  CHECK(parsed("0e93") == json::Value(0.0));
  CHECK(std::signbit(parsed("-0e93").as_number()));
  CHECK(parsed("0.000e-9999999999999999999999") == json::Value(0.0));
  CHECK(parsed("1e-9999999999999999999999") == json::Value(0.0));
  CHECK(parsed("2.4703282292062327e-324") == json::Value(0.0));  // just below half the smallest double
  CHECK(parsed("2.4703282292062328e-324") == json::Value(5e-324));
  // A tie is only broken by a digit far behind it: 2^53 + 1, then 800 zeros.
  CHECK(parsed("9007199254740993." + zeros + zeros).as_number() == 9007199254740992.0);
  CHECK(parsed("9007199254740993." + zeros + zeros + "1").as_number() == 9007199254740994.0);
  CHECK(parsed("1" + zeros.substr(0, 300) + ".5").as_number() == 1e300);
  CHECK(parsed("1.7976931348623158e308").as_number() == std::numeric_limits<double>::max());
  CHECK(parsed("1.00000005960464477539062500001").as_number() == 1.0000000596046448);
}

TEST_CASE("json: a string is written with its escapes") {
  std::string out;
  json::append_quoted(out, "\"\\/\b\f\n\r\t\x01\x1f\x7f\xC3\xA9"s + "\0"s);
  CHECK(out == "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xC3\xA9\\u0000\"");
}

TEST_CASE("json: invalid UTF-8 is written as U+FFFD, one per broken sequence") {
  const std::string mark = "\xEF\xBF\xBD";
  const List<std::pair<std::string, std::string>> cases = {
      {"a\xff"s + "b", "a" + mark + "b"},
      {"\xc0\xaf", mark + mark},
      {"\xe2\x82", mark},
      {"\xe2\x82"s + "a", mark + "a"},
      {"\xf0\x9f\x98", mark},
      {"\xf0\x9f\x98\xf0\x9f\x98\x80", mark + "\xf0\x9f\x98\x80"},
      {"\xed\xa0\x80", mark + mark + mark},
      {"\xf4\x90\x80\x80", mark + mark + mark + mark},
      {"\x80", mark},
  };
  for (const auto& [text, expected] : cases) {
    std::string out;
    json::append_quoted(out, text);
    CHECK(out == "\"" + expected + "\"");
    CHECK_FALSE(json::is_utf8(text));
    CHECK(json::is_utf8(out));
    CHECK(parsed(out).as_string() == expected);
  }
}

TEST_CASE("json: every Unicode scalar value survives raw, and reader and is_utf8 agree on three-byte tails") {
  for (uint32_t c = 1; c <= 0x10ffff; c += c < 0x3000 ? 1 : 37) {
    const auto text = encode_utf8(c);
    const bool is_scalar = c < 0xd800 || c > 0xdfff;
    REQUIRE(json::is_utf8(text) == is_scalar);
    std::string quoted;
    json::append_quoted(quoted, text);
    if (is_scalar) REQUIRE(parsed(quoted).as_string() == text);
  }
  std::mt19937 random(2);
  for (int i = 0; i < 200'000; ++i) {
    std::string text = "xxxx";
    for (char& byte : text) byte = static_cast<char>(0x7f + random() % 129);
    REQUIRE(static_cast<bool>(json::parse("\"" + text + "\"")) == json::is_utf8(text));
  }
}

TEST_CASE("json: set appends, replaces, and makes an object of null") {
  json::Value value;
  value.set("a", 1);
  value.set("b", "x");
  value.set("a", 2.5);
  CHECK(json::write(value) == R"({"a":2.5,"b":"x"})");
}

TEST_CASE("json: pointer tokens") { CHECK(json::pointer_token("a/b~c") == "a~1b~0c"); }

TEST_CASE("json: events carry exact 64-bit integers, depths and offsets") {
  struct Recorder final : json::Listener {
    std::vector<json::Event> events;
    Status on(const json::Event& event) override {
      events.push_back(event);
      return {};
    }
  } recorder;
  REQUIRE(json::parse_events("{\"a\":[18446744073709551615,-0,18446744073709551616]}", {}, recorder, 8));
  REQUIRE(recorder.events.size() == 8);
  const auto& events = recorder.events;
  CHECK(events[0].kind == json::EventKind::object_begin);
  CHECK(events[0].depth == 0);
  CHECK(events[0].byte == 8);
  CHECK(events[1].byte == 12);
  CHECK(events[1].kind == json::EventKind::key);
  CHECK(events[1].depth == 1);
  CHECK(events[3].kind == json::EventKind::integer);
  CHECK(events[3].magnitude == ~uint64_t{0});
  CHECK(events[3].depth == 2);
  CHECK(events[4].is_negative);
  CHECK(events[4].magnitude == 0);
  CHECK(events[5].kind == json::EventKind::real);
  CHECK(events[6].kind == json::EventKind::array_end);
  CHECK(events[6].depth == 1);
  CHECK(events[7].depth == 0);
}

TEST_CASE("json: a listener's error ends the parse and is its result") {
  struct Stubborn final : json::Listener {
    int seen = 0;
    Status on(const json::Event&) override {
      if (++seen == 3) return Error{ErrorCode::file_invalid, "here", "enough"};
      return {};
    }
  } stubborn;
  const auto status = json::parse_events("[1,2,3,4]", {}, stubborn);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::file_invalid);
  CHECK(stubborn.seen == 3);
}

TEST_CASE("json: offsets of errors count from first_byte") {
  struct Ignore final : json::Listener {
    Status on(const json::Event&) override { return {}; }
  } ignore;
  CHECK(json::parse_events("[x]", {}, ignore, 8).error().where == "byte 9");
  CHECK(json::parse_events("[]]", {}, ignore, 8).error().where == "byte 10");
}

TEST_CASE("json: numbers of random digits agree with strtod") {
  std::mt19937 random(3);
  const auto digits = [&](size_t most) {
    std::string text;
    for (size_t n = random() % (most + 1); n > 0; --n) text += static_cast<char>('0' + random() % 10);
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    std::string text =
        std::to_string(1 + random() % 9) + digits(i % 100 == 0 ? 250 : 25) + "." + digits(i % 50 == 0 ? 900 : 25) + "1";
    text += "e" + std::to_string(static_cast<int>(random() % 660) - 350);
    const double expected = std::strtod(text.c_str(), nullptr);
    const auto result = json::parse(text);
    CAPTURE(text);
    REQUIRE(static_cast<bool>(result) == std::isfinite(expected));
    if (result) REQUIRE(std::bit_cast<uint64_t>(result->as_number()) == std::bit_cast<uint64_t>(expected));
  }
}
