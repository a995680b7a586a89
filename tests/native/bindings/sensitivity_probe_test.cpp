// BoundSensitivityProbe: what quantizing one layer of the loaded block does.
#include "bindings/bound_pass.h"
#include "model/linear_layers.h"

namespace wasmquant::testing {
namespace {

std::string weight_config(const std::string& dtype) {
  return R"({"global_quant_config": {"weight": {"dtype": ")" + dtype +
         R"(", "qscheme": "per_channel", "ch_axis": 0}}, "exclude": ["lm_head"]})";
}

TEST_CASE("BoundSensitivityProbe: fewer bits change each layer more") {
  BoundPass bound;
  const std::string options = R"({"format": "fake-quantized"})";
  const auto coarse = work_for(bound.model, weight_config("int4"), options),
             fine = work_for(bound.model, weight_config("int8"), options);
  bound.steps(0, 1);
  bound.load(1);
  BoundSensitivityProbe early(*bound.pass);
  CHECK(refusal(early.measure(0, *coarse, 0)) == "state-invalid calibration: no inputs were seen");
  BoundSensitivityProbe probe(*bound.pass);
  CHECK(refusal(probe.run(bound.pass->portions())) == "argument-invalid portion: does not exist");
  for (uint32_t portion = 0; portion < bound.pass->portions(); ++portion) CHECK(refusal(probe.run(portion)) == "");
  size_t measured = 0;
  for (uint32_t number = 0; bool(coarse->task(number)); ++number) {
    const TensorTask task = taken(coarse->task(number));
    for (const model::LinearLayer& layer : model::linear_layers()) {
      if (task.name != "model.layers.0." + model::layer_name(bound.plan.architecture, layer.weight) + ".weight")
        continue;
      const auto slot = static_cast<uint32_t>(layer.weight);
      const double loss = taken(probe.measure(slot, *coarse, number));
      CHECK(loss > taken(probe.measure(slot, *fine, number)));
      CHECK(loss < 1);
      ++measured;
      CHECK(refusal(probe.measure(static_cast<uint32_t>(model::Slot::input_norm), *coarse, number)) ==
            "argument-invalid " + task.name + ": is not a quantized linear layer of the block");
    }
  }
  CHECK(measured == 7);
  CHECK(refusal(probe.measure(0, *coarse, 999)).find("argument-invalid task 999: does not exist") == 0);
}

}  // namespace
}  // namespace wasmquant::testing
