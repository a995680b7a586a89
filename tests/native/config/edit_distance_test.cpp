#include "config/match/edit_distance.h"

#include <doctest/doctest.h>

#include <string>

using namespace wasmquant;

TEST_CASE("distance counts edits and swaps, not case") {
  struct Case {
    const char *a, *b;
    size_t distance;
  };
  for (const Case& c : {Case{"", "", 0},
                        {"a", "", 1},
                        {"dtype", "dtype", 0},
                        {"dytpe", "dtype", 1},
                        {"dtyp", "dtype", 1},
                        {"INT8", "int8", 0},
                        {"kitten", "sitting", 3},
                        {"group_size", "groupsize", 1},
                        {"ca", "abc", 3}}) {
    CAPTURE(c.a);
    CHECK(edit_distance(c.a, c.b, 100) == c.distance);
    CHECK(edit_distance(c.b, c.a, 100) == c.distance);
    CHECK(edit_distance(c.a, c.b, c.distance) == c.distance);
    if (c.distance > 0) {
      CHECK(edit_distance(c.a, c.b, c.distance - 1) == c.distance);
    }
  }
}

TEST_CASE("the nearest name is found, or none") {
  constexpr std::string_view kNames[] = {"per_tensor", "per_channel", "per_group", "group_size"};
  CHECK(nearest("per_chanel", kNames) == "per_channel");
  CHECK(nearest("per-group", kNames) == "per_group");
  CHECK(nearest("group", kNames) == "group_size");
  CHECK(nearest("banana", kNames) == "");
  CHECK(nearest("", kNames) == "");
  CHECK(nearest(std::string(500, 'p'), kNames) == "");
  CHECK(did_you_mean("Per_Tensors", kNames) == "did you mean \"per_tensor\"?");
}
