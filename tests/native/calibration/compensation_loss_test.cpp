// What tiny-llama loses when roundings compensate the errors of earlier ones, and after equalization.
#include "calibration/calibrated_llama.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

TEST_CASE("calibration: GPTAQ, Qronos, GPFQ and equalization lose less than rounding to nearest") {
  if (is_slow_build()) return;
  const Int4Loss loss;
  const double plain = loss("");
  for (const char* name : {"gptaq", "qronos", "gpfq"}) {
    CAPTURE(name);
    CHECK(loss(std::string("{\"name\": \"") + name + "\"}") < plain - 0.015);
  }
  CHECK(loss(R"({"name": "gptaq", "true_sequential": false})") < plain - 0.015);
  CHECK(loss(R"({"name": "awq"}, {"name": "gptaq"})") < loss(R"({"name": "awq"})"));
  CHECK(loss(R"({"name": "cle"})") < plain - 0.01);
}

}  // namespace
