// Rows to blocks: cuts rows into batches that fit the L1 cache, makes them finite, and runs the type's recipe.
#include "kernels/ggml/ggml_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/ggml/ggml_recipes.h"
#include "kernels/kernels.h"

namespace wasmquant::kernels {
namespace {

constexpr Stages kStages = {block_extents, block_codes,   measured_codes,   run_scales,     iq4_codes,
                            fp4_codes,     search_affine, search_symmetric, search_descent, search_iq4};

/// x, or a copy in `clean` with zeros for NaN and infinity.
const float* finite(const float* x, size_t count, float* clean) {
  if (!x || find_non_finite({x, count}) < 0) return x;
  for (size_t i = 0; i < count; ++i) clean[i] = std::isfinite(x[i]) ? x[i] : 0;
  return clean;
}

bool is_simple(GgmlType type) {
  return type == GgmlType::q8_0 || type == GgmlType::q4_0 || type == GgmlType::q4_1 || type == GgmlType::q5_0 ||
         type == GgmlType::q5_1;
}

/// At most kRecipeElements.
void quantize_piece(const Stages& stages, GgmlType type, const float* x, size_t count, const float* importance,
                    float energy, uint8_t* out) {
  const GgmlTypeInfo& info = info_of(type);
  const size_t blocks = count / info.block;
  if (type == GgmlType::mxfp4) return store_mxfp4(stages, x, blocks, out);
  if (is_direct(type)) {
    for (size_t i = 0; i < blocks; ++i) store_direct_block(type, x + i * info.block, out + i * info.block_bytes);
  } else if (info.block == 32 && is_simple(type) && !importance) {
    store_simple_blocks(stages, type, x, blocks, out);
  } else if (info.block == 32) {
    store_searched_blocks(stages, type, x, blocks, importance, energy, out);
  } else {
    for (size_t i = 0; i < blocks; ++i)
      store_super_block(stages, type, x + i * info.block, importance ? importance + i * info.block : nullptr,
                        out + i * info.block_bytes);
  }
}

/// Columns of one row, or of many rows without importance. `error`: null, or receives the error of what is stored.
void quantize_row(const Stages& stages, GgmlType type, const float* x, uint64_t columns, const float* importance,
                  uint8_t* out, ErrorSums* error) {
  const bool is_measured_on_the_way = is_simple(type) && !importance;
  float energy = 0;
  if (importance && is_simple(type)) {  // one mean square for the whole row
    for (uint64_t i = 0; i < columns; ++i) energy += std::isfinite(x[i]) ? x[i] * x[i] : 0;
    energy /= static_cast<float>(columns);
  }
  float clean_x[kRecipeElements], clean_importance[kRecipeElements];
  for (uint64_t at = 0; at < columns; at += kRecipeElements) {
    const auto count = static_cast<size_t>(columns - at < kRecipeElements ? columns - at : kRecipeElements);
    ErrorSums sums;
    if (is_measured_on_the_way) sums = store_simple_blocks(stages, type, x + at, count / info_of(type).block, out);
    if (!is_in_range(sums)) {
      const float* piece = finite(x + at, count, clean_x);
      const float* weight = finite(importance ? importance + at : nullptr, count, clean_importance);
      quantize_piece(stages, type, piece, count, weight, energy, out);
      if (error) sums = error_of_blocks(type, x + at, count, out);
    }
    if (error) error->append(sums);
    out += info_of(type).bytes_of(count);
  }
}

/// f16 and bf16, in batches because `out` need not be aligned.
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
                 const float* importance, uint8_t* out, ErrorSums* error) {
  const uint64_t count = rows * columns;
  if (count == 0) return;
  if (info_of(type).block > 1 && (!importance || !uses_importance(type)))
    return quantize_row(stages, type, x, count, nullptr, out, error);  // row ends do not matter to blocks
  if (type == GgmlType::f32) {
    std::memcpy(out, x, static_cast<size_t>(count * sizeof(float)));
  } else if (type == GgmlType::f16) {
    store_halves(x, count, narrow_f16, out);
  } else if (type == GgmlType::bf16) {
    store_halves(x, count, narrow_bf16, out);
  } else {
    for (uint64_t row = 0; row < rows; ++row)
      quantize_row(stages, type, x + row * columns, columns, importance, out + row * info_of(type).bytes_of(columns),
                   nullptr);
  }
  if (error) error->append(error_of_blocks(type, x, count, out));
}

}  // namespace

bool uses_importance(GgmlType type) noexcept {
  return info_of(type).block > 1 && type != GgmlType::q8_0 && type != GgmlType::mxfp4 && type != GgmlType::tq1_0 &&
         type != GgmlType::tq2_0 && !is_direct(type);
}

void quantize_blocks(GgmlType type, const float* x, uint64_t rows, uint64_t columns, const float* importance,
                     uint8_t* out, ErrorSums* error) noexcept {
  quantize_by(kStages, type, x, rows, columns, importance, out, error);
}

ErrorSums error_of_blocks(GgmlType type, const float* x, uint64_t count, const uint8_t* blocks) noexcept {
  ErrorSums total;
  float y[kErrorBlock];
  for (uint64_t at = 0; at < count; at += kErrorBlock) {
    const auto piece = static_cast<size_t>(count - at < kErrorBlock ? count - at : kErrorBlock);
    dequantize_blocks(type, blocks + info_of(type).bytes_of(at), piece, y);
    total.append(error_between({x + at, piece}, y));
  }
  return total;
}

namespace reference {

void quantize_blocks(GgmlType type, const float* x, uint64_t rows, uint64_t columns, const float* importance,
                     uint8_t* out, ErrorSums* error) noexcept {
  constexpr Stages kOracles = {block_extents, block_codes,   measured_codes,   run_scales,     iq4_codes,
                               fp4_codes,     search_affine, search_symmetric, search_descent, search_iq4};
  quantize_by(kOracles, type, x, rows, columns, importance, out, error);
}

}  // namespace reference

}  // namespace wasmquant::kernels
