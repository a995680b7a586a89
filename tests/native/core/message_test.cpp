#include "core/message.h"

#include <doctest/doctest.h>

#include <limits>

using namespace wasmquant;

TEST_CASE("gaps take text and whole numbers of every kind") {
  const std::string string = "string";
  const std::string_view view = "view";
  const char* pointer = "pointer";
  CHECK(text_of("{} {} {} {}", string, view, pointer, "literal") == "string view pointer literal");
  CHECK(text_of("{} {}", uint32_t{4294967295}, int32_t{-5}) == "4294967295 -5");
  CHECK(text_of("{}/{}", std::numeric_limits<uint64_t>::max(), std::numeric_limits<int64_t>::min()) ==
        "18446744073709551615/-9223372036854775808");
  CHECK(text_of("no gap") == "no gap");
  CHECK(text_of("{}{}", 0u, std::string_view("{}\0{q}", 6)) == std::string("0{}\0{q}", 7));
}

TEST_CASE("gaps take floats, with six digits and no more zeros than can be read") {
  const std::pair<float, const char*> texts[] = {{0.0f, "0"},
                                                 {-0.0f, "-0"},
                                                 {65504.0f, "65504"},
                                                 {1e6f, "1000000"},
                                                 {-1.5f, "-1.5"},
                                                 {0.1f, "0.1"},
                                                 {1.0f / 3, "0.333333"},
                                                 {999999.5f, "1000000"},
                                                 {1e-9f, "1e-9"},
                                                 {1.25e-5f, "0.0000125"},
                                                 {1.5e30f, "1.5e30"},
                                                 {3.4028235e38f, "3.40282e38"},
                                                 {1e-45f, "1.4013e-45"},
                                                 {1e11f, "1e11"},
                                                 {12345678.0f, "12345700"},
                                                 {std::numeric_limits<float>::infinity(), "Infinity"},
                                                 {-std::numeric_limits<float>::infinity(), "-Infinity"},
                                                 {std::numeric_limits<float>::quiet_NaN(), "NaN"}};
  for (const auto& [number, text] : texts) CHECK(text_of("{}", number) == text);
}

TEST_CASE("quoted gaps escape and shorten") {
  CHECK(text_of("key {q}!", "a\"b") == "key \"a\\\"b\"!");
  CHECK(wasmquant::quoted(std::string(80, 'x')) == '"' + std::string(80, 'x') + '"');
  CHECK(wasmquant::quoted(std::string(81, 'x')) == '"' + std::string(80, 'x') + "...\"");
}

TEST_CASE("braces that are no gap are text") {
  CHECK(text_of("add {\"a\": {{q}: {}}, {", "x", 3) == "add {\"a\": {\"x\": 3}, {");
}

TEST_CASE("an error has its place and its sentence") {
  const Error error =
      error_at(ErrorCode::file_invalid, std::string_view("weights"), "found {}; the limit is {}", 3, "2");
  CHECK(error.code == ErrorCode::file_invalid);
  CHECK(error.where == "weights");
  CHECK(error.message == "found 3; the limit is 2");
}
