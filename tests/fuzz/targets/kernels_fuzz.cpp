// Every kernel on every instruction set against its scalar oracle.
#include "cases/kernel_case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wasmquant::fuzz::KernelCase({data, size}).run();
  return 0;
}
