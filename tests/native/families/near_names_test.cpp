#include "families/near_names.h"

#include <doctest/doctest.h>

namespace wasmquant::families {

TEST_CASE("names near another one begin like it, the most alike first") {
  constexpr std::string_view kNames[] = {"llama", "qwen2", "qwen3", "qwen2_moe", "phi", "qwen3_vl"};
  CHECK(names_near(kNames, "qwen3_vl_moe", "a guide") ==
        "6 types can, such as qwen3_vl, qwen3, qwen2 (all are in a guide)");
  CHECK(names_near(kNames, "qw", "a guide") == "6 types can (all are in a guide)");
  CHECK(names_near(kNames, "rwkv", "a guide") == "6 types can (all are in a guide)");
  CHECK(names_near({}, "rwkv", "a guide") == "0 types can (all are in a guide)");
}

}  // namespace wasmquant::families
