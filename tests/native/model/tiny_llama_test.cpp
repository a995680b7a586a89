// The trained tiny-llama against what PyTorch computed with it (tests/files/tiny-llama/README.md).
#include <algorithm>
#include <cmath>

#include "kernels/arch.h"
#include "model/model_folder.h"

namespace wasmquant::testing {
namespace {

constexpr size_t kTinyLlamaLength = 256;
const std::string kTinyLlamaReference = "files/tiny-llama-reference/";

double bits_per_token(ForwardSession& session) {
  double nats = 0;
  for (size_t i = 0; i < session.pass().sequences(); ++i) nats += session.pass().loss_of(i);
  return nats / std::log(2.0) / static_cast<double>(session.pass().sequences() * (kTinyLlamaLength - 1));
}

/// The beginnings of the first sequences: what follows changes nothing before it.
std::vector<int32_t> prefixes_of(const std::string& file, size_t sequences, size_t length) {
  const std::vector<int32_t> all = file_of(kTinyLlamaReference + file).tensor<int32_t>("input_ids");
  std::vector<int32_t> out;
  for (size_t i = 0; i < sequences; ++i)
    out.insert(out.end(), all.begin() + static_cast<ptrdiff_t>(i * kTinyLlamaLength),
               all.begin() + static_cast<ptrdiff_t>(i * kTinyLlamaLength + length));
  return out;
}

TEST_CASE("tiny-llama: logits of two sequences") {
  const ModelFolder model("files/tiny-llama");
  const size_t length = is_slow_build() ? 40 : kTinyLlamaLength;
  const std::vector<int32_t> tokens = prefixes_of("eval_tokens.safetensors", 2, length);
  const std::vector<float> expected = file_of(kTinyLlamaReference + "logits_f32.safetensors").tensor<float>("logits");
  std::vector<float> logits;
  run_forward(model, tokens, length, 1 << 20, model::InputPrecision::float32, nullptr, &logits);
  const size_t width = expected.size() / (2 * kTinyLlamaLength);
  double largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const size_t position = i / width / length * kTinyLlamaLength + i / width % length;
    largest = std::max(largest, std::fabs(double{logits[i]} - expected[position * width + i % width]));
  }
  CHECK(largest < 1e-4);
}

TEST_CASE("tiny-llama: the next token of a sequence has the largest logit of its last position") {
  const ModelFolder model("files/tiny-llama");
  const std::vector<float> expected = file_of(kTinyLlamaReference + "logits_f32.safetensors").tensor<float>("logits");
  const size_t width = expected.size() / (2 * kTinyLlamaLength);
  for (const size_t length : {2, 17, 40}) {
    const std::vector<int32_t> tokens = prefixes_of("eval_tokens.safetensors", 2, length);
    const auto session = run_forward(model, tokens, length, 20000);
    for (size_t i = 0; i < 2; ++i) {
      const auto row = expected.begin() + static_cast<ptrdiff_t>((i * kTinyLlamaLength + length - 1) * width);
      CHECK(session->pass().next_token(i) == std::max_element(row, row + static_cast<ptrdiff_t>(width)) - row);
    }
    CHECK(session->pass().next_token(2) == -1);
  }
}

TEST_CASE("tiny-llama: losses do not depend on instruction set, tiles or the batch") {
  constexpr size_t kShort = 20;
  const ModelFolder model("files/tiny-llama");
  const std::vector<int32_t> tokens = prefixes_of("eval_tokens.safetensors", 3, kShort);
  const auto whole = run_forward(model, tokens, kShort);
  const kernels::Simd before = kernels::active_arch();
  for (const kernels::Simd arch : kernels::available_archs()) {
    REQUIRE(kernels::force_arch(arch));
    for (size_t i = 0; i < 3; ++i) {
      const auto alone = run_forward(model, std::span(tokens).subspan(i * kShort, kShort), kShort);
      CHECK(alone->pass().loss_of(0) == whole->pass().loss_of(i));
    }
  }
  REQUIRE(kernels::force_arch(before));
  const auto small_tiles = run_forward(model, tokens, kShort, 10000);
  CHECK(std::fabs(small_tiles->pass().loss_of(1) - whole->pass().loss_of(1)) < 1e-4);
}

TEST_CASE("tiny-llama: bits per byte of the evaluation text") {
  if (is_slow_build()) return;
  const ModelFolder model("files/tiny-llama");
  const std::vector<int32_t> tokens = prefixes_of("eval_tokens.safetensors", 16, kTinyLlamaLength);
  CHECK(std::fabs(bits_per_token(*run_forward(model, tokens, kTinyLlamaLength)) - 1.5097) < 1e-3);
}

}  // namespace
}  // namespace wasmquant::testing
