#include "formats/part_name.h"

#include <doctest/doctest.h>

#include <string>

using namespace wasmquant;

TEST_CASE("part names: written and read") {
  CHECK(part_name({"a/model-", 2, 12, ".gguf"}) == "a/model-00002-of-00012.gguf");
  struct Row {
    const char* name;
    const char* stem;
    uint32_t number, count;
    const char* extension;
    const char* next;  // the name of the part behind it
  };
  for (const Row& row : {
           Row{"a-b/model-00002-of-00012.safetensors", "a-b/model-", 2, 12, ".safetensors",
               "a-b/model-00003-of-00012.safetensors"},
           Row{"model-00001-of-00002.fp16.safetensors", "model-", 1, 2, ".fp16.safetensors",
               "model-00002-of-00002.fp16.safetensors"},
           Row{"model.fp16-00001-of-00002.safetensors", "model.fp16-", 1, 2, ".safetensors",
               "model.fp16-00002-of-00002.safetensors"},
           Row{"model_9-of-12.gguf", "model_", 9, 12, ".gguf", "model_10-of-12.gguf"},
           Row{"model.01-of-02.safetensors", "model.", 1, 2, ".safetensors", "model.02-of-02.safetensors"},
           Row{"model-00000-of-00002.gguf", "model-", 0, 2, ".gguf", "model-00001-of-00002.gguf"},
           Row{"00001-of-00002", "", 1, 2, "", "00002-of-00002"},
           Row{"-00001-of-00002.gguf", "-", 1, 2, ".gguf", "-00002-of-00002.gguf"},
       }) {
    CAPTURE(row.name);
    auto name = read_part_name(row.name);
    REQUIRE(name);
    CHECK(name->stem == row.stem);
    CHECK(name->number == row.number);
    CHECK(name->count == row.count);
    CHECK(name->extension == row.extension);
    CHECK(part_name(*name) == row.name);
    ++name->number;
    CHECK(part_name(*name) == row.next);
  }
}

TEST_CASE("part names: other names are rejected") {
  for (const char* other :
       {"", ".gguf", "model.gguf", "model-00003-of-00002.gguf", "model-00000-of-00000.gguf", "model-of-00002.gguf",
        "model-1-of-n.gguf", "model-000001-of-00002.gguf", "1-of-2/model.gguf", "model-00001-off-0002.gguf"})
    CHECK_MESSAGE(!read_part_name(other), other);
}
