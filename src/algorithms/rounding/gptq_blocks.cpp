#include "algorithms/rounding/gptq_blocks.h"

#include <algorithm>
#include <vector>

#include "algorithms/rounding/feedback_loop.h"
#include "core/message.h"
#include "kernels/ggml/ggml_blocks.h"
#include "kernels/ggml/ggml_codebook.h"
#include "kernels/ggml/ggml_eights.h"
#include "kernels/ggml/ggml_grid.h"

namespace wasmquant {
namespace {

// Columns whose errors reach the columns behind in one product.
constexpr size_t kBlockColumns = 128;
constexpr size_t kMaxBlock = 256, kMaxRuns = 16, kEight = 8;

struct BlockRounding {
  const ErrorFeedback& feedback;
  const GgmlTypeInfo& info;
  size_t row_bytes;
  uint8_t* blocks;
  size_t run;
  // Of the strip's rows in the current block.
  float scale[kMaxRuns][ColumnStrip::kRows] = {}, minimum[kMaxRuns][ColumnStrip::kRows] = {};
  uint8_t codes[ColumnStrip::kRows][kMaxBlock] = {};
  // Of types with a codebook: what is stored, and the values of the eight columns that are rounded together.
  kernels::Eight eights[ColumnStrip::kRows][kernels::kEights] = {};
  float eight[kEight][ColumnStrip::kRows] = {};

  uint8_t* block_at(size_t row, size_t position) const noexcept {
    return blocks + row * row_bytes + info.bytes_of(feedback.order[position] / info.block * info.block);
  }

  // An error at position i costs its square over U_ii^2, no matter what the columns behind it become.
  void choose_scales(size_t begin, const ColumnStrip& strip) {
    std::vector<float> importance(info.block), row(info.block);
    for (size_t i = begin; i < begin + info.block; ++i) {
      const float diagonal = feedback.factor[i * strip.columns + i];
      importance[feedback.order[i] % info.block] = 1 / (diagonal * diagonal);
    }
    for (size_t r = 0; r < strip.count; ++r) {
      for (size_t i = begin; i < begin + info.block; ++i) row[feedback.order[i] % info.block] = strip.at(i)[r];
      uint8_t* const block = block_at(strip.row + r, begin);
      kernels::quantize_blocks(info.type, row.data(), 1, info.block, importance.data(), block);
      const kernels::BlockGrid grid = kernels::grid_of(info.type, block);
      for (size_t part = 0; part * run < info.block; ++part) {
        scale[part][r] = grid.scale[part];
        minimum[part][r] = grid.minimum[part];
      }
      for (uint32_t i = 0; kernels::has_codebook(info.type) && i < kernels::kEights; ++i)
        eights[r][i] = kernels::load_eight(info.type, block, i);
    }
  }

  // The eight columns from a position on, from their values as they are before the first of them is rounded.
  void round_eight(size_t begin, const ColumnStrip& strip) {
    float weight[kEight], x[kEight];
    const size_t first = feedback.order[begin] % info.block / kEight;
    for (size_t i = begin; i < begin + kEight; ++i) {
      const float diagonal = feedback.factor[i * strip.columns + i];
      weight[feedback.order[i] % kEight] = 1 / (diagonal * diagonal);
    }
    for (size_t r = 0; r < strip.count; ++r) {
      for (size_t i = begin; i < begin + kEight; ++i) x[feedback.order[i] % kEight] = strip.at(i)[r];
      kernels::nearest_eight(info.type, scale[first * kEight / run][r], weight, x, eights[r][first]);
      for (size_t i = begin; i < begin + kEight; ++i) eight[i - begin][r] = x[feedback.order[i] % kEight];
    }
  }

  void round_column(size_t i, const ColumnStrip& strip) {
    if (i % info.block == 0) choose_scales(i, strip);
    if (kernels::has_codebook(info.type)) {
      if (i % kEight == 0) round_eight(i, strip);
      std::copy_n(eight[i % kEight], strip.count, strip.at(i));
      if ((i + 1) % info.block == 0)
        for (size_t r = 0; r < strip.count; ++r) kernels::put_eights(info.type, eights[r], block_at(strip.row + r, i));
      return;
    }
    const size_t element = feedback.order[i] % info.block;
    uint8_t column[ColumnStrip::kRows];
    kernels::nearest_codes(info.type, scale[element / run], minimum[element / run], strip.count, strip.at(i), column);
    for (size_t r = 0; r < strip.count; ++r) codes[r][element] = column[r];
    if ((i + 1) % info.block != 0) return;
    for (size_t r = 0; r < strip.count; ++r) kernels::put_codes(info.type, codes[r], block_at(strip.row + r, i));
  }
};

}  // namespace

ColumnOrder block_order(GgmlType type, bool desc_act) noexcept {
  return {desc_act, info_of(type).block, kernels::has_codebook(type) ? kEight : kernels::run_of(type)};
}

Status gptq_blocks(const ErrorFeedback& feedback, GgmlType type, std::span<float> weight, std::span<uint8_t> blocks) {
  const GgmlTypeInfo& info = info_of(type);
  const size_t columns = feedback.columns();
  if (columns % info.block != 0)
    return error_at(ErrorCode::group_size_invalid, "", "{} columns are not whole blocks of {} of {}", columns,
                    info.block + 0, info.name);
  if (columns == 0 || weight.size() % columns != 0 || blocks.size() != info.bytes_of(weight.size()))
    return error_at(ErrorCode::shape_mismatch, "", "{} weights and {} bytes of blocks do not fit rows of {}",
                    weight.size(), blocks.size(), columns);
  if (const int64_t at = kernels::find_non_finite(weight); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "weight element {} is NaN or infinite", at);
  for (size_t at = 0; at < weight.size(); at += columns)
    for (const uint32_t j : feedback.dead) weight[at + j] = 0;
  BlockRounding work{feedback, info, static_cast<size_t>(info.bytes_of(columns)), blocks.data(), kernels::run_of(type)};
  const size_t step = std::max<size_t>(info.block, kBlockColumns);
  feed_errors(
      feedback, weight, [&](size_t begin) { return std::min(begin + step, columns); },
      [&](size_t i, const ColumnStrip& strip) { work.round_column(i, strip); });
  return {};
}

}  // namespace wasmquant
