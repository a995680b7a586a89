// Architectures as workers get them.
#include "pipeline/forward/packed_architecture.h"

#include <doctest/doctest.h>

#include "formats/read_file.h"
#include "model/config/layer_config.h"

namespace wasmquant::testing {
namespace {

model::Architecture architecture_of(const std::string& family) {
  const auto config = json::parse(test_files::file_text("files/forward/" + family + "/config.json"), json::kPython);
  REQUIRE(bool(config));
  auto read = model::read_architecture(*config);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  return std::move(*read);
}

std::string why_refused(const std::string& bytes) {
  const auto read = read_packed_architecture(bytes);
  return read ? "" : read.error().where + ": " + read.error().message;
}

TEST_CASE("packed architecture: every family is read as it was packed") {
  for (const char* family :
       {"llama", "gemma2", "gemma3_text", "qwen3", "roberta", "gpt_oss", "deepseek_v3", "lfm2_moe", "qwen3_next",
        "granitemoehybrid", "falcon_h1", "nemotron_h", "llama4_text", "gemma4_text", "gemma4_moe", "gemma3n_text"}) {
    CAPTURE(std::string(family));
    const model::Architecture a = architecture_of(family);
    const std::string bytes = packed_architecture(a);
    const auto read = read_packed_architecture(bytes);
    REQUIRE_MESSAGE(read, why_refused(bytes));
    CHECK(packed_architecture(*read) == bytes);
    CHECK(read->family == a.family);
    CHECK(read->latent.value_dim == a.latent.value_dim);
    CHECK(read->routing.gate_limit == a.routing.gate_limit);
    CHECK(read->routing.scales_input == a.routing.scales_input);
    CHECK(read->is_chunked == a.is_chunked);
    CHECK(read->layer_inputs.width == a.layer_inputs.width);
    CHECK(read->streams.count == a.streams.count);
    CHECK(read->streams.gate_limits == a.streams.gate_limits);
    CHECK(model::sizes_hold_together(*read));
    REQUIRE(read->sizes.keys_of.size() == a.sizes.keys_of.size());
    for (size_t layer = 0; layer < a.sizes.keys_of.size(); ++layer)
      CHECK(read->sizes.keys_of[layer] == a.sizes.keys_of[layer]);
    CHECK(read->query_growth.rate == a.query_growth.rate);
    CHECK(read->hidden == a.hidden);
    CHECK(read->max_positions == a.max_positions);
    CHECK(read->activation == a.activation);
    CHECK(read->norms.epsilon == a.norms.epsilon);
    CHECK(read->scales.attention == a.scales.attention);
    CHECK(read->scales.logit_cap == a.scales.logit_cap);
    CHECK(read->names.text() == a.names.text());
    REQUIRE(read->is_sliding.size() == a.layers);
    for (uint32_t layer = 0; layer < a.layers; ++layer) CHECK(read->is_sliding[layer] == a.is_sliding[layer]);
    CHECK(read->rope.theta == a.rope.theta);
    CHECK(read->rope.scaling == a.rope.scaling);
    CHECK(read->sliding_rope.theta == a.sliding_rope.theta);
  }
}

TEST_CASE("packed architecture: what is cut off, has more bytes, or is none is refused") {
  const std::string bytes = packed_architecture(architecture_of("llama"));
  for (size_t size = 0; size < bytes.size(); ++size) CHECK(why_refused(bytes.substr(0, size)) != "");
  CHECK(why_refused(bytes + '\0').find("bytes are left") != std::string::npos);
  CHECK(
      why_refused("wqtk\3" + bytes.substr(5)) ==
      "byte 0: is not the beginning of an architecture that this version packs; use module and worker of one version");
}

TEST_CASE("packed architecture: sizes and choices that no model has are refused") {
  const auto refused = [](auto&& change, const char* family = "llama") {
    model::Architecture a = architecture_of(family);
    change(a);
    return why_refused(packed_architecture(a)) == "architecture: has sizes or choices that no model has";
  };
  CHECK_FALSE(refused([](model::Architecture&) {}));
  CHECK(refused([](model::Architecture& a) { a.hidden = 0; }));
  CHECK(refused([](model::Architecture& a) { a.vocabulary = 1u << 25; }));
  CHECK(refused([](model::Architecture& a) { a.kv_heads = 3; }));
  CHECK(refused([](model::Architecture& a) { a.head_dim = 7; }));
  CHECK(refused([](model::Architecture& a) { a.head_dim = 1u << 24; }));
  CHECK(refused([](model::Architecture& a) { ++a.layers; }));
  CHECK(refused([](model::Architecture& a) { a.token_types = 0; }, "bert"));
  CHECK(refused([](model::Architecture& a) { a.names = {}; }));
  CHECK(refused([](model::Architecture& a) { a.rope.share = 0.1; }));
  CHECK(refused([](model::Architecture& a) { a.rope.scaling = model::Rope::Scaling::longrope; }));
  CHECK(refused([](model::Architecture& a) { a.is_rotated = {}; }));
  CHECK(refused([](model::Architecture& a) { a.query_growth.span = 0; }));
  CHECK(refused([](model::Architecture& a) { a.sizes.keys_of[0] = 1; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.sizes.head_dims[1] = 7; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.sizes.widths[4] = 0; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.sizes.kv_heads = {}; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.sizes.head_dims[4] = 10; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.layer_inputs.width = 0; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.streams.count = 1; }, "gemma3n_text"));
  CHECK(refused([](model::Architecture& a) { a.streams.count = 9; }, "gemma3n_text"));
  CHECK(refused([](model::Architecture& a) { a.streams.active = 4; }, "gemma3n_text"));
  CHECK(refused([](model::Architecture& a) { a.streams.low_rank = 0; }, "gemma3n_text"));
  CHECK(refused([](model::Architecture& a) { a.streams.gate_limits.pop_back(); }, "gemma3n_text"));
  CHECK(refused([](model::Architecture& a) { a.layer_inputs.tokens = 0; }, "gemma4_text"));
  CHECK(refused([](model::Architecture& a) { a.convolution_width = 0; }, "lfm2_moe"));
  CHECK(refused([](model::Architecture& a) { a.convolution_width = 1u << 20; }, "lfm2_moe"));
  CHECK(refused([](model::Architecture& a) { a.mixers = {}; }, "lfm2_moe"));
  CHECK(refused([](model::Architecture& a) { a.mixers[0] = 9; }, "qwen3_next"));
  CHECK(refused([](model::Architecture& a) { a.recurrence.key_heads = 3; }, "qwen3_next"));
  CHECK(refused([](model::Architecture& a) { a.recurrence.norm_columns = 7; }, "granitemoehybrid"));
  CHECK(refused([](model::Architecture& a) { a.names.set(model::ModelPart::decay, {}); }, "granitemoehybrid"));
  for (uint32_t model::Recurrence::*size : {&model::Recurrence::heads, &model::Recurrence::key_heads,
                                            &model::Recurrence::key_dim, &model::Recurrence::value_dim})
    for (const uint32_t wrong : {0u, 1u << 25})
      CHECK(refused([&](model::Architecture& a) { a.recurrence.*size = wrong; }, "qwen3_next"));
  CHECK(refused([](model::Architecture& a) { a.recurrence.step_rank = 4; }, "granitemoehybrid"));
  CHECK(refused([](model::Architecture& a) { a.is_split = false; }, "nemotron_h"));
  CHECK(refused([](model::Architecture& a) { a.factors.push_back(1); }, "falcon_h1"));
  CHECK(refused([](model::Architecture& a) { a.names.set(model::ModelPart::state_out, {}); }, "falcon_h1"));
  for (uint32_t model::Latent::*size :
       {&model::Latent::rank, &model::Latent::query_rank, &model::Latent::rope_dim, &model::Latent::value_dim}) {
    CHECK(refused([&](model::Architecture& a) { a.latent.*size = 0; }, "deepseek_v3"));
    CHECK(refused([&](model::Architecture& a) { a.latent.*size = 1u << 25; }, "deepseek_v3"));
  }
  CHECK(refused([](model::Architecture& a) { a.is_sliding[0] = true; }));
  CHECK(refused([](model::Architecture& a) { a.activation = static_cast<kernels::Activation>(5); }));
  CHECK(refused([](model::Architecture& a) { a.rope.scaling = static_cast<model::Rope::Scaling>(6); }));
  CHECK(refused([](model::Architecture& a) { a.sliding_rope.scaling = static_cast<model::Rope::Scaling>(9); }));
}

}  // namespace
}  // namespace wasmquant::testing
