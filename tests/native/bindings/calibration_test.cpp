// BoundCalibration: the algorithms of a config, for a pass.
#include "handles/calibration.h"

#include "bindings/bound_calibration.h"

namespace wasmquant::testing {
namespace {

TEST_CASE("BoundCalibration: has what its algorithms need, and refuses configs that the model cannot have") {
  const CalibratedPass gptq(calibrated_config(R"({"name": "gptq"})"));
  CHECK(gptq.calibration->state()->steps.size() == 1);
  CHECK_FALSE(gptq.calibration->state()->tables.has_value());
  const CalibratedPass rotated(rotated_config(R"("r1": true)"), "files/forward/mistral");
  CHECK(rotated.calibration->state()->tables.has_value());
  const auto made = [&](const std::string& config) {
    return refusal(BoundCalibration::make(*gptq.pass, config, 0, 1));
  };
  CHECK(made("{").substr(0, 14) == "config-invalid");
  CHECK(made(R"({"global_quant_config": {"weight": {"dtype": "int99"}}})").substr(0, 14) == "config-invalid");
  CHECK(made(calibrated_config(R"({"name": "gptq"}, {"name": "awq"})")).find("is out of order; the order is") !=
        std::string::npos);
  CHECK(made(rotated_config(R"("r1": true, "rotation_size": 7)")).find("7 does not divide the hidden size 24") !=
        std::string::npos);
}

TEST_CASE("BoundCalibration: a pass forgets the calibration's reference once it is gone") {
  CalibratedPass bound(calibrated_config(R"({"name": "gptaq"})"));
  CHECK(bound.calibration->state()->blocks.needs_reference());
  bound.calibration.reset();
  bound.steps(0, 2);  // reads no reference that is gone
  CHECK(bound.pass->portions() == 2);
}

}  // namespace
}  // namespace wasmquant::testing
