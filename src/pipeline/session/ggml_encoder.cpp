#include <algorithm>
#include <vector>

#include "families/head_interleave.h"
#include "kernels/ggml/ggml_blocks.h"
#include "pipeline/session/tile_encoder.h"

namespace wasmquant {

namespace {

// Rows of blocks with their own scales, so one pass suffices; ValueTransform may rearrange values.
class GgmlEncoder final : public TileEncoder {
 public:
  explicit GgmlEncoder(const EncoderInput& in) : in_(in) {}

  Status encode(const TileRange& tile, TileOutput& out) override {
    const WeightLayout& layout = in_.task.layout;
    const StorageDtypeInfo& stored = info_of(layout.components.front().dtype);
    const GgmlType type = *ggml_type_of(stored.dtype);
    const uint64_t step = unit_lines_of(layout);
    for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
      const uint64_t lines = std::min(step, tile.end - begin);
      // Blocks treat infinities as 0, like NaN; plain types use the largest value.
      const std::span<const float> x =
          in_.check.clamped(changed_rows(tile, begin, lines), info_of(type).block == 1, changed_);
      uint8_t* to = out.slices.front().data() + stored.bytes_of((begin - tile.begin) * layout.columns);
      kernels::ErrorSums error;
      quantize_rows(type, x.data(), begin, lines, to, error);
      TRY_VOID(in_.check.blocks(error, type, x, to, begin * layout.columns));
      out.errors.push_back(error);
    }
    return {};
  }

 private:
  // Rows [first, first + count) of the output as float32, from the tile's input.
  std::span<const float> changed_rows(const TileRange& tile, uint64_t first, uint64_t count) {
    const uint64_t columns = in_.task.layout->columns, head = in_.task.change.interleaved_rows;
    if (!in_.task.change.any()) return in_.source.values((first - tile.begin) * columns, count * columns);
    changed_.resize(count * columns);
    if (in_.task.change.is_transposed) {
      const uint64_t width = tile.count();  // of an input row, [columns, width]
      for (uint64_t column = 0; column < columns; ++column) {
        const std::span<const float> x = in_.source.values(column * width + (first - tile.begin), count);
        for (uint64_t row = 0; row < count; ++row) changed_[row * columns + column] = x[row];
      }
    } else {
      const std::span<const float> x = in_.source.values((first - tile.begin) * columns, count * columns);
      // A bias element corresponds to a weight row.
      if (head != 0)
        families::HeadInterleave(head).to_pairs(x, in_.task.layout->rows == 1 ? 1 : columns, changed_.data());
      else
        std::copy(x.begin(), x.end(), changed_.begin());
    }
    if (in_.task.change.adds_one)
      for (float& v : changed_) v += 1.0f;
    return changed_;
  }

  // Quantizes rows [first, first + count) of the output, each with its importance, and adds their error.
  void quantize_rows(GgmlType type, const float* x, uint64_t first, uint64_t count, uint8_t* out,
                     kernels::ErrorSums& error) const {
    const uint64_t columns = in_.task.layout->columns;
    const std::vector<float>& importance = in_.task.importance;
    if (importance.empty()) return kernels::quantize_blocks(type, x, count, columns, nullptr, out, &error);
    const uint64_t expert_rows = in_.task.layout->rows / (importance.size() / columns), end = first + count;
    const float* row = x;
    uint8_t* to = out;
    while (first < end) {
      const uint64_t expert = first / expert_rows, rows = std::min(end, (expert + 1) * expert_rows) - first;
      kernels::quantize_blocks(type, row, rows, columns, importance.data() + expert * columns, to);
      first += rows;
      row += rows * columns;
      to += info_of(type).bytes_of(rows * columns);
    }
    error.append(kernels::error_of_blocks(type, x, count * columns, out));
  }

  const EncoderInput in_;
  std::vector<float> changed_;
};

}  // namespace

std::unique_ptr<TileEncoder> ggml_encoder(const EncoderInput& in) { return std::make_unique<GgmlEncoder>(in); }

}  // namespace wasmquant
