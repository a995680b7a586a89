// Speed of matrix products, of the factorisations that rest on them, in GFLOP/s, and of GPTQ, which rests on both, in
// seconds; single thread.
#pragma once
#include <cstddef>
#include <string>

#include "timing.h"

namespace wasmquant::bench {

/// Rows whose names contain `only`. With json, one line per row: {name, gflops}, of GPTQ {name, seconds}.
void bench_products(const std::string& only, size_t rounds, Statistic statistic, bool json);

}  // namespace wasmquant::bench
