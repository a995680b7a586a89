// Inputs of every linear layer of tiny-llama, captured on their way, against calib_stats (its README).
#include <cmath>
#include <memory>

#include "algorithms/input_statistics.h"
#include "model/linear_layers.h"
#include "model/model_folder.h"

namespace wasmquant::testing {
namespace {

constexpr size_t kCaptureLength = 256, kLayers = 4;
const std::string kCaptureReference = "files/tiny-llama-reference/";

struct Statistics final : model::InputSink {
  std::unique_ptr<InputStatistics> of[kLayers + 1][model::kBlockInputs + 1];
  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override {
    auto& statistics = of[layer][static_cast<size_t>(input)];
    if (!statistics) statistics = std::make_unique<InputStatistics>(columns, true);
    return statistics->add(x);
  }
};

/// Relative to the largest value: single entries of a Hessian may cancel to nothing.
void check_close(const std::string& name, const std::vector<float>& actual, const std::vector<float>& expected,
                 double factor = 1) {
  REQUIRE(actual.size() == expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::fabs(double{expected[i]}));
    difference = std::max(difference, std::fabs(actual[i] * factor - expected[i]));
  }
  CHECK_MESSAGE(difference < 1e-4 * largest, name, ": ", difference, " of ", largest);
}

TEST_CASE("tiny-llama: statistics of the inputs of linear layers") {
  if (is_slow_build()) return;
  const ModelFolder model("files/tiny-llama");
  const ModelFolder expected = file_of(kCaptureReference + "calib_stats.safetensors");
  const std::vector<int32_t> tokens =
      file_of(kCaptureReference + "calib_tokens.safetensors").tensor<int32_t>("input_ids");
  Statistics statistics;
  run_forward(model, tokens, kCaptureLength, 1 << 20, model::InputPrecision::float32, &statistics);
  size_t compared = 0;
  const auto compare = [&](const std::string& name, InputStatistics& found) {
    CHECK(found.tokens() == tokens.size());
    check_close(name, found.largest(), expected.tensor<float>(name + ".input_absmax"));
    check_close(name, found.mean(), expected.tensor<float>(name + ".input_absmean"));
    ++compared;
    if (expected.index.find(name + ".input_hessian") == nullptr) return;
    const auto hessian = found.finish_hessian();
    REQUIRE(bool(hessian));
    check_close(name, *hessian, expected.tensor<float>(name + ".input_hessian"), 0.5);
    ++compared;
  };
  const auto architecture = model::read_architecture(*json::parse(model.config, json::kPython));
  REQUIRE(bool(architecture));
  for (size_t layer = 0; layer < kLayers; ++layer)
    for (size_t input = 0; input < model::kBlockInputs; ++input)
      for (const model::LinearLayer& consumer :
           model::consumers_of(*architecture, static_cast<model::LinearInput>(input)))
        compare("model.layers." + std::to_string(layer) + "." + model::layer_name(*architecture, consumer.weight),
                *statistics.of[layer][input]);
  compare("lm_head", *statistics.of[kLayers][static_cast<size_t>(model::LinearInput::head)]);
  CHECK(compared == kLayers * 7 + 1 + 2);
}

}  // namespace
}  // namespace wasmquant::testing
