#include "families/head_interleave.h"

#include <algorithm>

namespace wasmquant::families {

void HeadInterleave::to_pairs(std::span<const float> halves, uint64_t columns, float* out) const noexcept {
  for (uint64_t row = 0; row < halves.size() / columns; ++row)
    std::copy_n(halves.data() + halves_row(row) * columns, columns, out + row * columns);
}

void HeadInterleave::to_halves(std::span<const float> pairs, uint64_t columns, float* out) const noexcept {
  for (uint64_t row = 0; row < pairs.size() / columns; ++row)
    std::copy_n(pairs.data() + row * columns, columns, out + halves_row(row) * columns);
}

}  // namespace wasmquant::families
