// Speed of matrix products and of the factorisations that rest on them, in GFLOP/s, single thread.
#pragma once
#include <cstddef>
#include <string>

#include "timing.h"

namespace wasmquant::bench {

/// Rows whose names contain `only`. With json, one line per row: {name, gflops}.
void bench_products(const std::string& only, size_t rounds, Statistic statistic, bool json);

}  // namespace wasmquant::bench
