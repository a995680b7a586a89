// Plans of arbitrary headers under arbitrary configs.
#include "cases/plan_case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wasmquant::fuzz::run_plan_case({data, size});
  return 0;
}
