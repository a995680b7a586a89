#include <algorithm>
#include <cmath>
#include <vector>

#include "pipeline/session/scaled_codes.h"

namespace wasmquant {
namespace {

class ColumnEncoder final : public TileEncoder {
 public:
  explicit ColumnEncoder(const EncoderInput& in)
      : in_(in), codes_of_(in), band_(unit_lines_of(in.task.layout)), length_(*in.task.layout->run_in_tile()) {}

  Status encode(const TileRange& tile, TileOutput& out) override {
    const WeightLayout& layout = in_.task.layout;
    const uint64_t width = tile.count(), groups = width / length_;
    out.errors.resize((width + band_ - 1) / band_);
    qparams_.resize(tile_scale_count(layout, tile));
    codes_.resize(layout.rows * width);
    for (uint64_t row = 0; row < layout.rows; ++row) {
      const std::span<const float> x = in_.source.values(row * width, width);
      const std::span<QParams> q = std::span(qparams_).subspan(row * groups, groups);
      const uint64_t first_element = row * layout.columns + tile.begin;
      codes_of_.find_scales(x, length_, first_element / length_, first_element, q);
      for (uint64_t begin = 0; begin < width; begin += band_) {
        const uint64_t count = std::min(band_, width - begin), scales = count / length_;
        out.errors[begin / band_].append(codes_of_.encode(one_scale_per_run(scales, length_),
                                                          q.subspan(begin / length_, scales), x.subspan(begin, count),
                                                          0, codes_.data() + row * width + begin));
      }
    }
    TRY_VOID(check(tile, out.errors));
    List<uint8_t*> to(out.slices.size());
    for (size_t c = 0; c < to.size(); ++c) to[c] = out.slices[c].data();
    scratch_.resize(codes_.size());
    pack_tile(layout, tile, codes_.data(), qparams_, codes_of_.second_scale(), scratch_.data(), to);
    return {};
  }

 private:
  // Of the first column that has one, the first element that is lost.
  Status check(const TileRange& tile, const List<kernels::ErrorSums>& errors) {
    if (in_.check.saturates()) return {};
    const WeightLayout& layout = in_.task.layout;
    const uint64_t width = tile.count(), groups = width / length_;
    const Granularity g = one_scale_per_run(groups, length_);
    for (uint64_t begin = 0; begin < width; begin += band_) {
      if (errors[begin / band_].all_finite() && !in_.check.may_lose(qparams_)) continue;
      uint64_t row = 0, column = std::min(begin + band_, width);
      const uint64_t end = column;
      float x_found = 0, y_found = 0, scale = 0;
      for (uint64_t r = 0; r < layout.rows; ++r) {
        const std::span<const float> x = in_.source.values(r * width, width);
        const std::span<const QParams> q = std::span<const QParams>(qparams_).subspan(r * groups, groups);
        const std::span<const float> y = codes_of_.decode(g, q, codes_.data() + r * width, width, 0);
        for (uint64_t c = begin; c < column; ++c) {
          if (std::isfinite(x[c]) && !in_.check.limit().is_lost(x[c], y[c], q[c / length_].scale)) continue;
          row = r;
          column = c;
          x_found = x[c];
          y_found = y[c];
          scale = q[c / length_].scale;
        }
      }
      if (column != end) return in_.check.lost(row * layout.columns + tile.begin + column, x_found, y_found, scale);
    }
    return {};
  }

  const EncoderInput in_;
  ScaledCodes codes_of_;
  const uint64_t band_, length_;  // columns of a unit, and of a scale
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;
};

}  // namespace

std::unique_ptr<TileEncoder> column_encoder(const EncoderInput& in) { return std::make_unique<ColumnEncoder>(in); }

}  // namespace wasmquant
