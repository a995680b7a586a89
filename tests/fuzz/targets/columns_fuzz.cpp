// Every column-wise algorithm on every granularity and shape.
#include "cases/column_case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wasmquant::fuzz::run_column_case({data, size});
  return 0;
}
