// Rows of words that are filled in part have the length that the model's other tensors and config.json name.
#include "pipeline/stored/row_lengths.h"

#include <doctest/doctest.h>

using namespace wasmquant;

namespace {

constexpr uint64_t kPerWord = 8;

}  // namespace

TEST_CASE("row lengths: layers that a runtime joins read the width of the embedding") {
  const auto config = json::parse(R"({"hidden_size": 60, "intermediate_size": 100, "head_dim": 10,
                                      "num_attention_heads": 3})");
  REQUIRE(bool(config));
  RowLengths lengths(*config);
  CHECK(lengths.of("model.layers.0.self_attn.q_proj", 64, kPerWord) == 60);
  CHECK(lengths.of("model.layers.0.mlp.gate_proj", 64, kPerWord) == 60);
  CHECK(lengths.of("model.layers.0.mlp.down_proj", 104, kPerWord) == 100);
  CHECK(lengths.of("model.layers.0.self_attn.o_proj", 32, kPerWord) == 30);
}

TEST_CASE("row lengths: a module's other layer reads as many values as its joined layers write") {
  RowLengths lengths{json::Value()};
  lengths.add_hidden(64);
  lengths.add_rows("model.layers.0.self_attn.q_proj", 60);
  lengths.add_rows("model.layers.0.mlp.up_proj", 62);
  CHECK(lengths.of("model.layers.0.self_attn.o_proj", 64, kPerWord) == 60);
  CHECK(lengths.of("model.layers.0.mlp.down_proj", 64, kPerWord) == 62);
  CHECK(lengths.of("model.layers.0.self_attn.q_proj", 64, kPerWord) == 64);
}

TEST_CASE("row lengths: whole words if no length ends in the last word, unknown if several do") {
  RowLengths lengths{json::Value()};
  CHECK(lengths.of("a.b", 64, kPerWord) == 64);
  lengths.add(48);
  CHECK(lengths.of("a.b", 64, kPerWord) == 64);
  lengths.add(58);
  CHECK(lengths.of("a.b", 64, kPerWord) == 58);
  lengths.add(58);
  CHECK(lengths.of("a.b", 64, kPerWord) == 58);
  lengths.add(64);
  CHECK(lengths.of("a.b", 64, kPerWord) == 0);
}
