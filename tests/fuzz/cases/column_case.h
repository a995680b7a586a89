// One column-wise algorithm on a layer of any shape with any arrangement of scales. It must stay inside its arrays, and
// its values must be those of its codes.
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant::fuzz {

/// Runs one case; aborts when codes and values differ. The digest of what the algorithm gave.
uint64_t run_column_case(std::span<const uint8_t> input);

}  // namespace wasmquant::fuzz
