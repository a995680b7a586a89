// The trained tiny-llama against what PyTorch computed with it (tests/files/tiny-llama/README.md).
#include <algorithm>
#include <cmath>

#include "kernels/arch.h"
#include "model/model_folder.h"

namespace wasmquant::testing {
namespace {

constexpr size_t kLength = 256;
const std::string kReference = "files/tiny-llama-reference/";

double bits_per_token(ForwardSession& session) {
  double nats = 0;
  for (size_t i = 0; i < session.pass().sequences(); ++i) nats += session.pass().loss_of(i);
  return nats / std::log(2.0) / static_cast<double>(session.pass().sequences() * (kLength - 1));
}

double largest_difference(const std::vector<float>& x, const std::vector<float>& y) {
  REQUIRE(x.size() == y.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::fabs(double{x[i]} - y[i]));
  return largest;
}

TEST_CASE("tiny-llama: logits of two sequences") {
  const ModelFolder model("files/tiny-llama");
  std::vector<int32_t> tokens = file_of(kReference + "eval_tokens.safetensors").tensor<int32_t>("input_ids");
  tokens.resize(2 * kLength);
  const std::vector<float> expected = file_of(kReference + "logits_f32.safetensors").tensor<float>("logits");
  std::vector<float> logits;
  run_forward(model, tokens, kLength, 1 << 20, model::InputPrecision::float32, nullptr, &logits);
  const double difference = largest_difference(logits, expected);
  MESSAGE("largest difference " << difference);
  CHECK(difference < 1e-4);
}

TEST_CASE("tiny-llama: bits per byte do not depend on instruction set, tiles or the batch") {
  const ModelFolder model("files/tiny-llama");
  std::vector<int32_t> tokens = file_of(kReference + "eval_tokens.safetensors").tensor<int32_t>("input_ids");
  tokens.resize(3 * kLength);
  const auto whole = run_forward(model, tokens, kLength);
  const kernels::Simd before = kernels::active_arch();
  for (const kernels::Simd arch : kernels::available_archs()) {
    REQUIRE(kernels::force_arch(arch));
    for (size_t i = 0; i < 3; ++i) {
      const auto alone = run_forward(model, std::span(tokens).subspan(i * kLength, kLength), kLength);
      CHECK(alone->pass().loss_of(0) == whole->pass().loss_of(i));
    }
  }
  REQUIRE(kernels::force_arch(before));
  const auto small_tiles = run_forward(model, tokens, kLength, 10000);
  CHECK(std::fabs(small_tiles->pass().loss_of(1) - whole->pass().loss_of(1)) < 1e-4);
}

TEST_CASE("tiny-llama: bits per byte of the validation text, float32 and with int8 activations") {
  const ModelFolder model("files/tiny-llama");
  const std::vector<int32_t> tokens =
      file_of(kReference + "validation_tokens.safetensors").tensor<int32_t>("input_ids");
  const double plain = bits_per_token(*run_forward(model, tokens, kLength));
  MESSAGE("bits per byte " << plain);
  CHECK(std::fabs(plain - 1.5088) < 1e-3);
}

}  // namespace
}  // namespace wasmquant::testing
