// Rows to blocks: cut into pieces that stay in the first-level cache, made finite, handed to the type's recipe.
#include "kernels/ggml_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/ggml_recipes.h"
#include "kernels/kernels.h"

namespace wasmquant::kernels {
namespace {

constexpr Stages kStages = {block_extents, block_codes,      iq4_codes,      fp4_codes,
                            search_affine, search_symmetric, search_descent, search_iq4};

/// x, or a copy in `clean` with zeros for NaN and infinity.
const float* finite(const float* x, size_t count, float* clean) {
  if (!x || find_non_finite({x, count}) < 0) return x;
  for (size_t i = 0; i < count; ++i) clean[i] = std::isfinite(x[i]) ? x[i] : 0;
  return clean;
}

bool is_simple(GgmlType type) {
  return type == GgmlType::q8_0 || type == GgmlType::mxfp4 || type == GgmlType::q4_0 || type == GgmlType::q4_1 ||
         type == GgmlType::q5_0 || type == GgmlType::q5_1;
}
void quantize_row(const Stages& stages, GgmlType type, const float* x, uint64_t columns, const float* importance,
                  uint8_t* out) {
  const GgmlTypeInfo& info = info_of(type);
  float energy = 0;
  if (importance && is_simple(type)) {  // one mean square for the whole row
    for (uint64_t i = 0; i < columns; ++i) energy += std::isfinite(x[i]) ? x[i] * x[i] : 0;
    energy /= static_cast<float>(columns);
  }
  float clean_x[kRecipeElements], clean_importance[kRecipeElements];
  for (uint64_t at = 0; at < columns; at += kRecipeElements) {
    const auto count = static_cast<size_t>(columns - at < kRecipeElements ? columns - at : kRecipeElements);
    const float* piece = finite(x + at, count, clean_x);
    const float* weight = finite(importance ? importance + at : nullptr, count, clean_importance);
    const size_t blocks = count / info.block;
    if (info.block == 32) {
      if (is_simple(type) && !weight)
        store_simple_blocks(stages, type, piece, blocks, out);
      else
        store_searched_blocks(stages, type, piece, blocks, weight, energy, out);
    } else {
      for (size_t i = 0; i < blocks; ++i)
        store_super_block(stages, type, piece + i * info.block, weight ? weight + i * info.block : nullptr,
                          out + i * info.block_bytes);
    }
    out += blocks * info.block_bytes;
  }
}

/// f16 and bf16, piecewise because `out` need not be aligned.
template <class Narrow>
void store_halves(const float* x, uint64_t count, Narrow narrow, uint8_t* out) {
  uint16_t halves[kRecipeElements];
  for (uint64_t at = 0; at < count; at += kRecipeElements) {
    const auto piece = static_cast<size_t>(count - at < kRecipeElements ? count - at : kRecipeElements);
    narrow(std::span<const float>(x + at, piece), halves);
    std::memcpy(out + 2 * at, halves, 2 * piece);
  }
}

void quantize_by(const Stages& stages, GgmlType type, const float* x, uint64_t rows, uint64_t columns,
                 const float* importance, uint8_t* out) {
  if (rows * columns == 0) return;
  if (type == GgmlType::f32) {
    std::memcpy(out, x, static_cast<size_t>(rows * columns * sizeof(float)));
  } else if (type == GgmlType::f16) {
    store_halves(x, rows * columns, narrow_f16, out);
  } else if (type == GgmlType::bf16) {
    store_halves(x, rows * columns, narrow_bf16, out);
  } else if (!importance || !uses_importance(type)) {
    quantize_row(stages, type, x, rows * columns, nullptr, out);  // blocks do not mind where rows end
  } else {
    for (uint64_t row = 0; row < rows; ++row, x += columns, out += info_of(type).bytes_of(columns))
      quantize_row(stages, type, x, columns, importance, out);
  }
}

}  // namespace

bool uses_importance(GgmlType type) noexcept {
  return info_of(type).block > 1 && type != GgmlType::q8_0 && type != GgmlType::mxfp4 && type != GgmlType::tq1_0 &&
         type != GgmlType::tq2_0;
}

void quantize_blocks(GgmlType type, const float* x, uint64_t rows, uint64_t columns, const float* importance,
                     uint8_t* out) noexcept {
  quantize_by(kStages, type, x, rows, columns, importance, out);
}

namespace reference {

void quantize_blocks(GgmlType type, const float* x, uint64_t rows, uint64_t columns, const float* importance,
                     uint8_t* out) noexcept {
  constexpr Stages kOracles = {block_extents, block_codes,      iq4_codes,      fp4_codes,
                               search_affine, search_symmetric, search_descent, search_iq4};
  quantize_by(kOracles, type, x, rows, columns, importance, out);
}

}  // namespace reference

}  // namespace wasmquant::kernels
