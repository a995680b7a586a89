// BoundDivergence: what two passes of the same tokens predict.
#include <cmath>

#include "bindings/bound_pass.h"

namespace wasmquant::testing {
namespace {

/// Loads the next tiles of both heads until they are read.
std::vector<double> positions_of(BoundPass& reference, BoundPass& model) {
  const auto last = static_cast<uint32_t>(reference.plan.steps.size() - 1);
  for (BoundPass* const pass : {&reference, &model}) pass->steps(0, last);
  const auto divergence = taken(BoundDivergence::make(*reference.pass, *model.pass));
  const auto& tensors = reference.plan.steps[last].tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (BoundPass* const pass : {&reference, &model}) REQUIRE(bool(pass->begin(last, i)));
    for (uint32_t tile = 0; tile < tensors[i].task.tiles; ++tile) {
      for (BoundPass* const pass : {&reference, &model}) {
        pass->model.memory.fill(taken(pass->pass->reads(tile)));
        REQUIRE(bool(pass->pass->load(tile)));
      }
      if (tensors[i].slot == kFinalNormSlot) continue;
      for (uint32_t portion = 0; portion < model.pass->portions(); ++portion)
        CHECK(refusal(divergence->run(portion)) == "");
      const bool is_last = tile + 1 == tensors[i].task.tiles;
      CHECK(json::write(divergence->behind()) ==
            (is_last ? R"({"reference":false,"model":false})" : R"({"reference":true,"model":true})"));
    }
  }
  const auto found = taken(divergence->positions());
  return {found.begin(), found.end()};
}

TEST_CASE("BoundDivergence: none from a model to itself, some to a changed one") {
  BoundPass reference, same, changed;
  const auto none = positions_of(reference, same);
  REQUIRE(none.size() == 2 * 15 * 4);
  for (size_t i = 0; i < none.size(); i += 4) {
    CHECK(none[i] == 0);
    CHECK(none[i + 1] == none[i + 2]);
    CHECK(none[i + 3] == 1);
  }
  const StoredTensor& stored = changed.model.index->index().find("model.norm.weight")->stored;
  const float value = 3.0f;
  std::memcpy(changed.model.memory.files[0].data() + stored.begin, &value, sizeof(value));
  BoundPass again;
  const auto some = positions_of(again, changed);
  double sum = 0;
  for (size_t i = 0; i < some.size(); i += 4) {
    CHECK(some[i] >= 0);
    CHECK(some[i + 2] == none[i + 2]);
    sum += some[i];
  }
  CHECK(sum > 0);
}

TEST_CASE("BoundDivergence: refuses other tokens and another vocabulary") {
  BoundPass reference, other("files/forward/llama", R"({"lengths": [16, 16]})", tokens_of_pass(5));
  CHECK(refusal(BoundDivergence::make(*reference.pass, *other.pass)) ==
        "argument-invalid against: was given other tokens");
  std::string config = reference.model.config;
  config.replace(config.find("\"vocab_size\": 40"), 16, "\"vocab_size\": 48");
  const auto tokens = tokens_of_pass();
  const auto larger = taken(pass_of(packed_config(config), tokens));
  CHECK(
      refusal(BoundDivergence::make(*larger, *reference.pass)) ==
      "argument-invalid against: has a vocabulary of 48 tokens, but the model has 40: give the model that it was made "
      "from");
}

TEST_CASE("BoundDivergence: predictions that are not finite") {
  for (const bool is_reference : {true, false}) {
    BoundPass reference, model;
    BoundPass& spoiled = is_reference ? reference : model;
    const StoredTensor& stored = spoiled.model.index->index().find("model.norm.weight")->stored;
    const float nan = std::nanf("");
    std::memcpy(spoiled.model.memory.files[0].data() + stored.begin, &nan, sizeof(nan));
    const auto last = static_cast<uint32_t>(reference.plan.steps.size() - 1);
    for (BoundPass* const pass : {&reference, &model}) pass->steps(0, last);
    const auto divergence = taken(BoundDivergence::make(*reference.pass, *model.pass));
    for (size_t i = 0; i < reference.plan.steps[last].tensors.size(); ++i)
      for (uint32_t tile = 0; tile < reference.plan.steps[last].tensors[i].task.tiles; ++tile) {
        for (BoundPass* const pass : {&reference, &model}) {
          if (tile == 0) REQUIRE(bool(pass->begin(last, i)));
          pass->model.memory.fill(taken(pass->pass->reads(tile)));
          REQUIRE(bool(pass->pass->load(tile)));
        }
        if (reference.plan.steps[last].tensors[i].slot == kFinalNormSlot) continue;
        for (uint32_t portion = 0; portion < model.pass->portions(); ++portion) REQUIRE(bool(divergence->run(portion)));
      }
    CHECK(refusal(divergence->positions()) ==
          std::string("value-not-finite ") + (is_reference ? "against" : "logits") +
              ": are NaN or infinite in a sequence; the weights contain such values, or overflow float32");
  }
}

}  // namespace
}  // namespace wasmquant::testing
