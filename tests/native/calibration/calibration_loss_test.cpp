// What tiny-llama loses after scales and roundings chosen by calibration. A file, and so a process, apart from those of
// error compensation: each takes minutes with sanitizers.
#include <algorithm>

#include "calibration/calibrated_llama.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

TEST_CASE("calibration: AWQ, GPTQ and both lose less than rounding to nearest") {
  if (is_slow_build()) return;
  const Int4Loss loss;
  const std::string awq = R"({"name": "awq"})", gptq = R"({"name": "gptq"})";
  const double plain = loss(""), by_awq = loss(awq), by_gptq = loss(gptq), by_both = loss(awq + ", " + gptq);
  CHECK(by_awq < plain - 0.015);
  CHECK(by_gptq < plain - 0.015);
  CHECK(by_both < std::min(by_awq, by_gptq));
  CHECK(loss(R"({"name": "gptq", "desc_act": false, "static_groups": false, "true_sequential": false})") <
        plain - 0.01);
  CHECK(loss(R"({"name": "gptq", "inside_layer_modules": ["down_proj"]})") < plain - 0.005);
}

TEST_CASE("calibration: SmoothQuant repairs 8-bit activations") {
  if (is_slow_build()) return;
  const ModelFolder model("files/tiny-llama");
  const std::vector<int32_t> calib = tokens_of("calib", 8), validation = tokens_of("validation", 16);
  const auto loss = [&](const std::string& rest) {
    const CalibratedModel found = calibrate(model, calibration_config_of(kCalibrationInt8, rest), calib, kLength);
    REQUIRE(found.blocks.size() == 4);
    return loss_with(model, found, validation, kLength, model::InputPrecision::int8_per_token);
  };
  const double plain = loss("");
  CHECK(loss(R"(, "pre_quant_opt_config": [{"name": "smoothquant", "alpha": 0.5}])") < plain - 0.05);
  CHECK(loss(R"(, "pre_quant_opt_config": [{"name": "activationequalization", "is_layerwise": false}])") <
        plain - 0.05);
}

}  // namespace
