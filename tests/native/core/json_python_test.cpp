// Grammar::python, which config.json is read in.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/json.h"

using namespace wasmquant;

TEST_CASE("json, Python's grammar: the three constants are numbers") {
  const auto parsed = json::parse(R"({"limit": [0.0, Infinity, -Infinity, NaN], "x": Infinity})", json::kPython);
  REQUIRE(parsed);
  const json::Array& items = (*parsed)["limit"].items();
  REQUIRE(items.size() == 4);
  CHECK(items[1] == json::Value(std::numeric_limits<double>::infinity()));
  CHECK(items[2] == json::Value(-std::numeric_limits<double>::infinity()));
  CHECK(std::isnan(items[3].as_number()));
  CHECK((*parsed)["x"].kind() == json::Kind::real);
  CHECK(std::isnan(json::parse("NaN", json::kPython)->as_number()));
}

TEST_CASE("json, Python's grammar: other spellings of them are refused where they begin") {
  const struct {
    const char *text, *where, *found;
  } refused[] = {
      {"Inf", "byte 0", "found 'I'"},         {"-NaN", "byte 1", "found 'N'"},
      {"[1, NaN.5]", "byte 4", "found 'N'"},  {"+Infinity", "byte 0", "found '+'"},
      {"[Infinity2]", "byte 9", "found '2'"}, {"infinity", "byte 0", "found 'i'"},
      {"nan", "byte 1", "found 'a'"},         {"Infinit", "byte 7", "the end"},
      {"-Inf", "byte 1", "found 'I'"},        {"[Infinitx]", "byte 8", "found 'x'"},
  };
  for (const auto& [text, where, found] : refused) {
    CAPTURE(text);
    const auto parsed = json::parse(text, json::kPython);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::json_invalid);
    CHECK(parsed.error().where == where);
    CHECK_MESSAGE(parsed.error().message.find(found) != std::string::npos, parsed.error().message);
  }
}

TEST_CASE("json, Python's grammar: of members of one name the last counts") {
  const auto parsed =
      json::parse(R"({"b":1,"a":{"x":1,"x":2},"c":3,"b":[4],"a":{"x":5,"\u0078":6},"b":7})", json::kPython);
  REQUIRE(parsed);
  CHECK(json::write(*parsed) == R"({"b":7,"a":{"x":6},"c":3})");
}

TEST_CASE("json, Python's grammar: hundreds of thousands of equal keys take no quadratic time") {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i % 1000) + "\":" + std::to_string(i) + ",";
  const auto parsed = json::parse(text + "\"end\":0}", json::kPython);
  REQUIRE(parsed);
  REQUIRE(parsed->members().size() == 1001);
  CHECK((*parsed)["k0"] == json::Value(199'000));
  CHECK((*parsed)["k999"] == json::Value(199'999));
}
