// Blocks of 32 elements whose scale is searched for, eight at a time. Layouts: ggml_simple_blocks.cpp; iq4_nl as q4_0.
#include <cmath>

#include "kernels/ggml/ggml_grid.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_recipes.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

constexpr size_t kSearchedBlock = 32, kUnit = kSearchedBlock * kSearchWidth;

/// What eight blocks store.
struct Found {
  float scale[kSearchWidth], minimum[kSearchWidth];
  uint8_t codes[kUnit];
};

void search_iq4_nl(const Stages& stages, const SearchInput& in, Found& found) {
  float inverse[kSearchWidth];
  stages.iq4(in, found.scale);
  for (size_t i = 0; i < kSearchWidth; ++i) inverse[i] = found.scale[i] != 0 ? 1 / found.scale[i] : 0;
  stages.codes_iq4(in.x, kUnit, kSearchedBlock, inverse, found.codes);
}

void search_linear(const Stages& stages, const SearchInput& in, float levels, bool has_minimum, Found& found) {
  SearchResult result;
  CodeRange range;
  if (has_minimum) {
    stages.affine(in, {levels, -0.9f, 0.05f, 36, false, true}, result);
    range.high = levels;
  } else {
    stages.symmetric(in, levels, result);
    range = {-levels, levels - 1, static_cast<int32_t>(levels)};
  }
  stages.codes(Coding::nearest, in.x, kUnit, kSearchedBlock, result.add, result.factor, range, found.codes);
  for (size_t i = 0; i < kSearchWidth; ++i) {
    found.scale[i] = result.scale[i];
    found.minimum[i] = result.minimum[i];
    if (result.is_empty[i]) std::memset(found.codes + i * kSearchedBlock, 0, kSearchedBlock);
  }
}

}  // namespace

void store_searched_blocks(const Stages& stages, GgmlType type, const float* x, size_t blocks, const float* importance,
                           float energy, uint8_t* out) noexcept {
  const bool has_fifth_bits = type == GgmlType::q5_0 || type == GgmlType::q5_1;
  const bool has_minimum = type == GgmlType::q4_1 || type == GgmlType::q5_1;
  float padded_x[kUnit] = {}, padded_importance[kUnit] = {}, energies[kSearchWidth];
  for (; blocks > 0; x += kUnit) {
    const size_t count = blocks < kSearchWidth ? blocks : kSearchWidth;
    SearchInput in{x, kSearchedBlock, importance ? Weighting::given_energy : Weighting::square, importance, energies};
    if (count < kSearchWidth) {
      std::memcpy(padded_x, x, count * kSearchedBlock * sizeof(float));
      in.x = padded_x;
      if (importance) {
        std::memcpy(padded_importance, importance, count * kSearchedBlock * sizeof(float));
        in.importance = padded_importance;
      }
    }
    for (size_t i = 0; i < kSearchWidth; ++i) {
      energies[i] = energy;
      if (type != GgmlType::iq4_nl || !importance) continue;
      energies[i] = 0;
      for (size_t j = 0; j < kSearchedBlock; ++j)
        energies[i] += in.x[i * kSearchedBlock + j] * in.x[i * kSearchedBlock + j];
      energies[i] *= 2.0f / kSearchedBlock;
    }
    Found found;
    if (type == GgmlType::iq4_nl)
      search_iq4_nl(stages, in, found);
    else
      search_linear(stages, in, has_minimum ? (has_fifth_bits ? 31.0f : 15.0f) : (has_fifth_bits ? 16.0f : 8.0f),
                    has_minimum, found);
    for (size_t i = 0; i < count; ++i, out += info_of(type).block_bytes) {
      store_u16(half_of(found.scale[i]), out);
      if (has_minimum) store_u16(half_of(found.minimum[i]), out + 2);
      put_codes(type, found.codes + i * kSearchedBlock, out);
    }
    blocks -= count;
    if (importance) importance += kUnit;
  }
}

}  // namespace wasmquant::kernels
