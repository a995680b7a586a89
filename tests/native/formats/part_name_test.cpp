#include "formats/part_name.h"

#include <doctest/doctest.h>

using namespace wasmquant;

TEST_CASE("part names: written and read") {
  CHECK(part_name({"a/model", 2, 12, ".gguf"}) == "a/model-00002-of-00012.gguf");
  const auto name = read_part_name("a-b/model-00002-of-00012.safetensors");
  REQUIRE(name);
  CHECK(name->stem == "a-b/model");
  CHECK(name->number == 2);
  CHECK(name->count == 12);
  CHECK(name->extension == ".safetensors");
  CHECK(part_name(*name) == "a-b/model-00002-of-00012.safetensors");
}

TEST_CASE("part names: other names are rejected") {
  for (const char* other : {"", ".gguf", "model.gguf", "model-00000-of-00002.gguf", "model-00003-of-00002.gguf",
                            "model-0001-of-0002.gguf", "model-00001-of-00002", "model-000a1-of-00002.gguf",
                            "model_00001-of-00002.gguf", "00001-of-00002.gguf", "model-00001-off-0002.gguf"})
    CHECK_MESSAGE(!read_part_name(other), other);
  CHECK(read_part_name("-00001-of-00002.gguf")->stem.empty());
}
