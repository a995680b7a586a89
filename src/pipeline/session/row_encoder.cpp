#include <algorithm>
#include <optional>
#include <vector>

#include "checkpoint/layout/weight_layout.h"
#include "pipeline/session/scaled_codes.h"

namespace wasmquant {
namespace {

class RowEncoder final : public TileEncoder {
 public:
  explicit RowEncoder(const EncoderInput& in) : in_(in), codes_of_(in), run_(in.task.layout->run_in_tile()) {}

  Status encode(const TileRange& tile, TileOutput& out) override {
    const WeightLayout& layout = in_.task.layout;
    const uint64_t step = unit_lines_of(layout);
    List<uint8_t*> to(out.slices.size());
    for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
      const TileRange unit{begin, std::min(begin + step, tile.end)};
      kernels::ErrorSums error;
      TRY_VOID(encode_unit(unit, (unit.begin - tile.begin) * layout.columns, error));
      out.errors.push_back(error);
      for (size_t c = 0; c < to.size(); ++c) {
        const Component& component = layout.components[c];
        const uint64_t at = slice_of(layout, component, unit).offset - slice_of(layout, component, tile).offset;
        to[c] = out.slices[c].data() + at;
      }
      scratch_.resize(codes_.size());
      pack_tile(layout, unit, codes_.data(), run_ ? qparams_ : in_.scales->qparams(), codes_of_.second_scale(),
                scratch_.data(), to);
    }
    return {};
  }

 private:
  // `in_tile`: the unit's first element in the tile.
  Status encode_unit(const TileRange& unit, uint64_t in_tile, kernels::ErrorSums& sums) {
    const WeightLayout& layout = in_.task.layout;
    const uint64_t count = unit.count() * layout.columns, in_tensor = unit.begin * layout.columns;
    // If each column has its own scales, a block covers as many rows as possible, to share the work per scale.
    const bool by_columns = !layout.granularity.run_length();
    const uint64_t block = run_         ? *run_ * std::max<uint64_t>(kBlockElements / *run_, 1)
                           : by_columns ? std::max(count, uint64_t{1})
                                        : kBlockElements;
    if (run_) qparams_.resize(tile_scale_count(layout, unit));
    codes_.resize(count);
    for (uint64_t at = 0; at < count; at += block) {
      const std::span<const float> x = in_.source.values(in_tile + at, std::min(block, count - at));
      if (run_) {
        const std::span<QParams> q = std::span(qparams_).subspan(at / *run_, x.size() / *run_);
        codes_of_.find_scales(x, *run_, (in_tensor + at) / *run_, in_tensor + at, q);
        TRY_VOID(take(one_scale_per_run(q.size(), *run_), q, x, {0, in_tensor + at}, codes_.data() + at, sums));
      } else {
        TRY_VOID(take(layout.granularity, in_.scales->qparams(), x, {in_tensor + at, in_tensor + at},
                      codes_.data() + at, sums));
      }
    }
    return {};
  }

  // Where x begins: for the granularity, and in the tensor.
  struct Begin {
    uint64_t of_scales, of_tensor;
  };
  Status take(const Granularity& g, std::span<const QParams> q, std::span<const float> x, Begin begin, uint8_t* codes,
              kernels::ErrorSums& sums) {
    const kernels::ErrorSums error = codes_of_.encode(g, q, x, begin.of_scales, codes);
    sums.append(error);
    if (in_.check.saturates() || (error.all_finite() && !in_.check.may_lose(q))) return {};
    const std::span<const float> y = codes_of_.decode(g, q, codes, x.size(), begin.of_scales);
    return in_.check.values(error, g, q, x, begin.of_scales, y.data(), begin.of_tensor);
  }

  const EncoderInput in_;
  ScaledCodes codes_of_;
  const std::optional<uint64_t> run_;  // elements of a scale, where tiles hold all of each
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;  // of a unit
};

}  // namespace

std::unique_ptr<TileEncoder> row_encoder(const EncoderInput& in) { return std::make_unique<RowEncoder>(in); }

}  // namespace wasmquant
