// What has to hold for every input: libFuzzer keeps an input that ends the program.
#pragma once
#include <cstdlib>

inline void require(bool condition) {
  if (!condition) std::abort();
}
