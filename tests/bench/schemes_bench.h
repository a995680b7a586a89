// Speed of quantizing by every dtype and every scheme that it knows: scales, then codes, as a run does them (without
// packing and without the error); single thread, float32 in.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "timing.h"

namespace wasmquant::bench {

/// Rows whose names, such as `int4 per_group 128`, contain `only`, over `x`, of which `copy_of` has the size. With
/// json, one line per row: {name, gbps, ratio_to_memcpy, gbps_in_cache}; the last is the same work over and over on 32
/// KiB.
void bench_schemes(std::span<const float> x, std::span<float> copy_of, const std::string& only, size_t rounds,
                   Statistic statistic, bool json);

}  // namespace wasmquant::bench
