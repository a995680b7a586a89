#include <algorithm>
#include <vector>

#include "pipeline/session/tile_encoder.h"
#include "quantize/block_float.h"

namespace wasmquant {
namespace {

// Row by row; exponents, shifts and codes in one stream.
class BlockFloatEncoder final : public TileEncoder {
 public:
  explicit BlockFloatEncoder(const EncoderInput& in)
      : in_(in),
        format_(block_float_of(in.task.layout->spec.dtype, static_cast<uint32_t>(in.task.layout->granularity.block))),
        exponents_(in.task.layout->granularity.blocks()),
        shifts_((in.task.layout->columns + 1) / 2),
        codes_(in.task.layout->columns),
        values_(in.task.layout->columns) {}

  Status encode(const TileRange& tile, TileOutput& out) override {
    const WeightLayout& layout = in_.task.layout;
    const size_t row_bytes = packing::block_row_bytes(layout.columns, format_);
    const uint64_t step = unit_lines_of(layout);
    for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
      kernels::ErrorSums sums;
      for (uint64_t line = begin; line < std::min(begin + step, tile.end); ++line) {
        const uint64_t row = line - tile.begin;
        const std::span<const float> x =
            in_.check.clamped(in_.source.values(row * layout.columns, layout.columns), true, clamped_);
        kernels::quantize_block_float(x, format_, exponents_.data(), shifts_.data(), codes_.data());
        kernels::dequantize_block_float(codes_, format_, exponents_.data(), shifts_.data(), values_.data());
        const kernels::ErrorSums error = kernels::error_between(x, values_.data());
        TRY_VOID(in_.check.values(error, layout.granularity, {}, x, 0, values_.data(), line * layout.columns));
        sums.append(error);
        packing::pack_block_row(codes_, format_, exponents_.data(), shifts_.data(),
                                out.slices.front().data() + row * row_bytes);
      }
      out.errors.push_back(sums);
    }
    return {};
  }

 private:
  const EncoderInput in_;
  const BlockFloatFormat format_;
  std::vector<uint8_t> exponents_, shifts_;  // of one row, as are the others
  std::vector<int8_t> codes_;
  std::vector<float> values_, clamped_;
};

}  // namespace

std::unique_ptr<TileEncoder> block_float_encoder(const EncoderInput& in) {
  return std::make_unique<BlockFloatEncoder>(in);
}

}  // namespace wasmquant
