// BoundForwardPass: losses, embeddings and next tokens of a model that is loaded tile by tile.
#include "handles/forward_pass.h"

#include <cmath>

#include "bindings/bound_pass.h"
#include "model/model_folder.h"

namespace wasmquant::testing {
namespace {

// Runs and keeps each step of a sequence that is to be continued; the embedding and the head stay tile by tile.
void run_and_keep(BoundPass& bound) {
  const auto steps = static_cast<uint32_t>(bound.plan.steps.size());
  for (uint32_t step = 0; step < steps; ++step) {
    bound.load(step, [&](const ForwardTensor& tensor) {
      if (tensor.is_streamed) CHECK(refusal(bound.pass->keep()) == "");
    });
    if (step == 0 || step + 1 == steps) continue;
    bound.run();
    CHECK(refusal(bound.pass->keep()) == "");
  }
}

TEST_CASE("BoundForwardPass: the losses of a session that is driven without it") {
  BoundPass bound;
  CHECK(bound.pass->portions() >= 1);
  bound.all();
  const auto losses = taken(bound.pass->losses());
  const ModelFolder model("files/forward/llama");
  const auto session = run_forward(model, tokens_of_pass(), 16);
  REQUIRE(losses.size() == 2);
  for (size_t i = 0; i < 2; ++i) CHECK(losses[i] == session->pass().loss_of(i));
  CHECK(losses[0] > 0);
  CHECK(losses[0] != losses[1]);
  CHECK(bound.pass->next_token(0) >= 0);
}

TEST_CASE("BoundForwardPass: options change what is computed") {
  const auto losses = [](const std::string& rest) {
    BoundPass bound("files/forward/llama", R"({"lengths": [16, 16])" + rest + "}");
    bound.all();
    const auto found = taken(bound.pass->losses());
    return std::vector<double>(found.begin(), found.end());
  };
  const auto plain = losses("");
  CHECK(losses(R"(, "keepsStates": true)") == plain);
  CHECK(losses(R"(, "activations": "int8")") != plain);
  CHECK(losses(R"(, "scored": "second-half")")[0] < plain[0]);
}

TEST_CASE("BoundForwardPass: a continued sequence keeps its steps, and runs on with each new token") {
  const std::vector<int32_t> tokens{3, 9, 27};
  BoundPass bound("files/forward/llama", R"({"lengths": [3], "positions": 5})", tokens, ForwardUse::run);
  const auto steps = static_cast<uint32_t>(bound.plan.steps.size());
  run_and_keep(bound);
  const int32_t next = bound.pass->next_token(0);
  CHECK(next >= 0);
  CHECK(refusal(bound.pass->extend(40)) == "argument-invalid tokens: token 40 is not one of the model's 40");
  CHECK(refusal(bound.pass->extend(next)) == "");
  for (uint32_t step = 0; step < steps; ++step) CHECK(refusal(bound.pass->run_kept(step)) == "");
  CHECK(refusal(bound.pass->run_kept(steps)) == "argument-invalid step: does not exist");

  std::vector<int32_t> longer = tokens;
  longer.push_back(next);
  BoundPass whole("files/forward/llama", R"({"lengths": [4]})", longer, ForwardUse::run);
  whole.all();
  CHECK(bound.pass->next_token(0) == whole.pass->next_token(0));
  CHECK(refusal(bound.pass->extend(1)) == "");
  CHECK(refusal(bound.pass->extend(1)) == "state-invalid tokens: 5 of the 5 positions of the sequence are taken");
}

TEST_CASE("BoundForwardPass: an encoder-decoder answers a prompt, of which it has what its encoder gave") {
  const std::vector<int32_t> tokens{3, 9, 27, 5};
  BoundPass bound("files/forward/t5_decoder", R"({"lengths": [4], "positions": 6})", tokens, ForwardUse::run);
  const auto steps = static_cast<uint32_t>(bound.plan.steps.size());
  run_and_keep(bound);
  const int32_t next = bound.pass->next_token(0);
  for (const int32_t token : {next, 1}) {
    CHECK(refusal(bound.pass->extend(token)) == "");
    for (uint32_t step = 0; step < steps; ++step) CHECK(refusal(bound.pass->run_kept(step)) == "");
  }
  // Of 6 tokens the encoder reads 4.
  BoundPass whole("files/forward/t5_decoder", R"({"lengths": [6]})", {3, 9, 27, 5, next, 1}, ForwardUse::run);
  whole.all();
  CHECK(taken(whole.pass->losses())[0] > 0);
  CHECK(bound.pass->next_token(0) == whole.pass->next_token(0));
  CHECK(refusal(bound.pass->extend(1)) == "state-invalid tokens: 3 of the 3 positions of the sequence are taken");
}

TEST_CASE("BoundForwardPass: embeddings of an encoder") {
  BoundPass bound("files/forward/bert", R"({"lengths": [16, 16]})", tokens_of_pass(), ForwardUse::embed);
  bound.all();
  const auto mean = taken(bound.pass->embeddings("mean"));
  const std::vector<float> means(mean.begin(), mean.end());
  const auto first = taken(bound.pass->embeddings("first"));
  CHECK(means.size() == 2 * bound.plan.architecture.hidden);
  CHECK(first.size() == means.size());
  CHECK(std::vector<float>(first.begin(), first.end()) != means);
}

TEST_CASE("BoundForwardPass: refuses architectures, options and tokens") {
  const std::string config = packed_config(test_files::file_text("files/forward/llama/config.json"));
  const auto made = [&](const std::string& architecture, const std::string& options, std::vector<int32_t> tokens) {
    return refusal(pass_of(architecture, tokens, options));
  };
  CHECK(made("{}", "{}", {1, 2}) ==
        "argument-invalid byte 0: is not the beginning of an architecture that this version packs; use module and "
        "worker of one version");
  CHECK(made(config, "{", {1, 2}).substr(0, 12) == "json-invalid");
  CHECK(
      made(config, R"({"lengths": [3]})", {1, 2}) ==
      "argument-invalid tokens: found 2 tokens for 1 sequences whose lengths add up to 3; a sequence needs at least 2 "
      "tokens");
  CHECK(made(config, R"({"lengths": [2, 0]})", {1, 2}) == "argument-invalid tokens: hold a sequence without tokens");
  CHECK(made(config, R"({"lengths": [2]})", {1, 40}) ==
        "argument-invalid tokens: token 40 at position 1 of sequence 0 is not one of the model's 40; was another "
        "tokenizer "
        "used?");
  CHECK(
      made(config, R"({"lengths": [33]})", std::vector<int32_t>(33, 1)) ==
      "argument-invalid tokens: a sequence of 33 tokens; the model has max_position_embeddings 32: cut it into shorter "
      "ones");
}

TEST_CASE("BoundForwardPass: refuses calls without a tensor, and what is out of place") {
  BoundPass bound;
  const std::string no_tensor = "state-invalid tensor: begin() was not called";
  CHECK(refusal(bound.pass->reads(0)) == no_tensor);
  CHECK(refusal(bound.pass->load(0)) == no_tensor);
  CHECK(refusal(bound.pass->run(0)) == no_tensor);
  CHECK(refusal(bound.pass->needs(0)) == no_tensor);
  CHECK(refusal(bound.pass->keep()) == no_tensor);
  CHECK(refusal(bound.pass->run_kept(0)) == no_tensor);
  CHECK(refusal(bound.pass->begin(0, kEmbeddingSlot, *bound.work, 999)).find("argument-invalid task 999: does not") ==
        0);
  CHECK(refusal(bound.pass->begin(1, 99, *bound.work, 0)) ==
        "argument-invalid model.embed_tokens.weight: does not belong to this model's forward pass");
  CHECK(refusal(bound.pass->load(0)) == no_tensor);
  REQUIRE(bool(bound.begin(0, 0)));
  CHECK(taken(bound.pass->needs(0)));
  CHECK(refusal(bound.pass->run(bound.pass->portions())) == "argument-invalid portion: does not exist");
  bound.load(0);
  REQUIRE(bool(bound.begin(1, 0)));
  CHECK(refusal(bound.pass->run(0)).find("state-invalid ") == 0);
  CHECK(refusal(bound.pass->run(0)).find(": was not loaded") != std::string::npos);
}

TEST_CASE("BoundForwardPass: weights that are not finite give no losses and no embeddings") {
  const auto spoil = [](BoundPass& bound, const std::string& name) {
    const StoredTensor& stored = bound.model.index->index().find(name)->stored;
    const float nan = std::nanf("");
    std::memcpy(bound.model.memory.files[0].data() + stored.begin, &nan, sizeof(nan));
    bound.all();
  };
  BoundPass decoder;
  spoil(decoder, "model.norm.weight");
  CHECK(refusal(decoder.pass->losses()) ==
        "value-not-finite logits: are NaN or infinite in a sequence; the weights contain such values, or overflow "
        "float32");
  CHECK(decoder.pass->next_token(0) == -1);
  BoundPass encoder("files/forward/bert", R"({"lengths": [16, 16]})", tokens_of_pass(), ForwardUse::embed);
  spoil(encoder, "embeddings.LayerNorm.weight");
  CHECK(refusal(encoder.pass->embeddings("mean")) ==
        "value-not-finite embeddings: are NaN or infinite; the weights contain such values, or overflow float32");
}

}  // namespace
}  // namespace wasmquant::testing
