// What a layer's quantization does to the residual stream, against the same sums over all tokens written out.
#include "pipeline/calibration/block_sensitivity.h"

#include <cmath>

#include "calibration/calibrated_model.h"
#include "model/linear_layers.h"

using namespace wasmquant;
using namespace wasmquant::testing;
using model::LinearInput;
using model::Slot;

namespace {

/// Passes inputs on and keeps them.
struct Recorder final : model::InputSink {
  explicit Recorder(BlockSensitivity& sensitivity) : next(sensitivity) {}
  Status accept(uint32_t layer, LinearInput input, std::span<const float> x, size_t columns) override {
    auto& kept = seen[static_cast<size_t>(input)];
    kept.insert(kept.end(), x.begin(), x.end());
    return next.accept(layer, input, x, columns);
  }
  BlockSensitivity& next;
  std::array<std::vector<float>, model::kBlockInputs> seen;
};

/// Mean over tokens of |x w^T|^2.
double energy(const std::vector<float>& x, const std::vector<float>& w, size_t columns) {
  double sum = 0;
  for (size_t t = 0; t < x.size() / columns; ++t)
    for (size_t row = 0; row < w.size() / columns; ++row) {
      double product = 0;
      for (size_t i = 0; i < columns; ++i) product += double{x[t * columns + i]} * w[row * columns + i];
      sum += product * product;
    }
  return sum / static_cast<double>(x.size() / columns);
}

TEST_CASE("sensitivity: the change of each layer's output, as a share of the residual stream") {
  const ModelFolder model("files/forward/llama");
  PlanOptions options;
  options.format = "fake-quantized";
  List<Diagnostic> diagnostics;
  const auto plan = make_plan(
      model.index, R"({"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}}})",
      options, diagnostics);
  const auto forward = plan_forward(model.index, *json::parse(model.config, json::kPython), {1 << 20, 1 << 20});
  REQUIRE(bool(plan));
  REQUIRE(bool(forward));
  std::vector<int32_t> tokens(32);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % 32);
  ForwardSession session(forward->architecture, model::InputPrecision::float32);
  REQUIRE(bool(session.pass().set_tokens(tokens, sequences_of(tokens, 16))));
  load_step(model, session, forward->steps[0], 0);

  load_step(model, session, forward->steps[1], 1);
  const model::BlockValues& block = session.pass().block();
  BlockSensitivity sensitivity(block);
  CHECK(sensitivity.finish(1).error().code == ErrorCode::state_invalid);
  const float nan[24] = {std::nanf("")};
  BlockSensitivity spoiled(block);
  const Status refused = spoiled.accept(2, LinearInput::feed_forward, nan, 24);
  CHECK(refused.error().where == "layers.2.feed-forward");
  Recorder recorder(sensitivity);
  session.set_sink(&recorder);
  run_all(session);
  session.set_sink(nullptr);
  const double stream = session.pass().stream_energy();
  REQUIRE(bool(sensitivity.finish(stream)));

  const auto columns_of = [&](const model::LinearLayer& layer) {
    return recorder.seen[static_cast<size_t>(layer.reads)].size() / tokens.size();
  };
  size_t measured = 0;
  for (const model::LinearLayer& layer : model::linear_layers()) {
    const std::string& name = model::layer_name(forward->architecture, layer.weight);
    CAPTURE(name);
    if (name.empty()) continue;
    const TensorTask* task = nullptr;
    for (const PlannedTensor& planned : plan->tensors)
      if (planned.task.name == forward->steps[1].name + "." + name + ".weight") task = &planned.task;
    REQUIRE(task != nullptr);
    const auto loss = sensitivity.measure(layer.weight, *task);
    REQUIRE(bool(loss));

    const std::vector<float>& weight = block[layer.weight];
    auto stored = store_modified(*task, weight, nullptr, weight);
    REQUIRE(bool(stored));
    std::vector<float> change(weight.size());
    for (size_t i = 0; i < weight.size(); ++i) change[i] = stored->values[i] - weight[i];
    const auto& x = recorder.seen[static_cast<size_t>(layer.reads)];
    const bool is_attention = layer.weight <= Slot::o;
    const auto& last = model::linear_layers()[static_cast<size_t>(is_attention ? Slot::o : Slot::down)];
    const double half = energy(recorder.seen[static_cast<size_t>(last.reads)], block[last.weight], columns_of(last));
    const double expected = energy(x, change, columns_of(layer)) / energy(x, weight, columns_of(layer)) * half / stream;
    CHECK(std::fabs(*loss - expected) < 1e-3 * expected);
    CHECK(sensitivity.measure(Slot::input_norm, *task).error().code == ErrorCode::argument_invalid);
    ++measured;
  }
  CHECK(measured == 7);
}

}  // namespace
