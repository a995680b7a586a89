// Tiles of codes: rows, or columns if codes are stored transposed.
#include <algorithm>

#include "checkpoint/layout/biased_codes.h"
#include "observers/search/per_scale_search.h"
#include "observers/statistics/contiguous.h"
#include "pipeline/task/session.h"
#include "quantize/quantize.h"

namespace wasmquant {
void TensorSession::find_scales(std::span<const float> x, uint64_t length, uint64_t first_scale, uint64_t first_element,
                                std::span<QParams> qparams) {
  if (scales_) {
    const std::span<const QParams> known = scales_->qparams().subspan(first_scale, qparams.size());
    std::copy(known.begin(), known.end(), qparams.begin());
    if (has_biases(task_.layout)) biases_of_zero_points(task_.layout->spec, x, false, qparams);
    return;
  }
  const WeightLayout& layout = task_.layout;
  if (needs_only_range(layout.spec))
    observe_contiguous(x, length, layout.spec, qparams);
  else
    search_scales(x, length, first_element, qparams);
  if (layout.codes != CodeStorage::source_values && layout.spec.scale_format != ScaleFormat::float32)
    for (QParams& q : qparams) q.scale = storable_scale(layout, q.scale, 1.0f);
  if (saturates())
    for (QParams& q : qparams) q.scale = std::min(q.scale, limit_.largest_scale);
  if (has_biases(layout)) biases_of_zero_points(layout.spec, x, true, qparams);
}

// For observers that search each scale separately.
void TensorSession::search_scales(std::span<const float> x, uint64_t length, uint64_t first_element,
                                  std::span<QParams> qparams) {
  const QuantizationSpec& spec = task_.layout->spec;
  const std::vector<float>& importance = task_.importance;
  PerScaleSearch search(spec, info_of(spec.observer).method, spec.observer_options);
  for (size_t i = 0; i < qparams.size(); ++i) {
    const uint64_t column = (first_element + i * length) % task_.layout->columns;
    qparams[i] =
        search(x.subspan(i * length, length), importance.empty() ? nullptr : importance.data() + column).qparams;
  }
}

kernels::ErrorSums TensorSession::encode(const Granularity& g, std::span<const QParams> qparams,
                                         std::span<const float> x, uint64_t begin, uint8_t* codes) {
  const QuantizationSpec& spec = task_.layout->spec;
  if (has_biases(task_.layout)) return quantize_biased(task_.layout, qparams, x, scratch_values_, codes);
  if (!stages_) return quantize_measured(g, spec, qparams, x, begin, codes);
  const QParams other{scales_->second_scale(), 0};
  scratch_values_.resize(x.size());
  stages_->numbers_of(other, x, scratch_values_.data());
  quantize(g, spec, qparams, kernels::Path::real, scratch_values_, begin, codes);
  dequantize(g, spec, qparams, codes, x.size(), begin, scratch_values_.data());
  stages_->values_of(other, scratch_values_);
  return kernels::error_between(x, scratch_values_.data());
}

Status TensorSession::run_rows(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const auto run = layout.run_in_tile();
  const uint64_t step = unit_lines();
  // If each column has its own scales, a block covers as many rows as possible, to share the work per scale.
  const bool by_columns = !layout.granularity.run_length();
  const uint64_t block = run          ? *run * std::max<uint64_t>(kBlockElements / *run, 1)
                         : by_columns ? std::max(step * layout.columns, uint64_t{1})
                                      : kBlockElements;
  List<uint8_t*> out(slices_.size());
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    const TileRange unit{begin, std::min(begin + step, tile.end)};
    const uint64_t in_tile = (unit.begin - tile.begin) * layout.columns, count = unit.count() * layout.columns;
    const uint64_t in_tensor = unit.begin * layout.columns;
    if (run) qparams_.resize(tile_scale_count(layout, unit));
    codes_.resize(count);
    scratch_.resize(count);
    kernels::ErrorSums sums;
    const auto take = [&](const Granularity& g, std::span<const QParams> q, std::span<const float> x, uint64_t first,
                          uint64_t at) {
      uint8_t* const codes = codes_.data() + at;
      const kernels::ErrorSums error = encode(g, q, x, first, codes);
      sums.append(error);
      return check_codes(error, g, q, x, first, codes, in_tensor + at);
    };
    for (uint64_t at = 0; at < count; at += block) {
      const std::span<const float> x = widened(in_tile + at, std::min(block, count - at));
      if (run) {
        const std::span<QParams> q = std::span(qparams_).subspan(at / *run, x.size() / *run);
        find_scales(x, *run, (in_tensor + at) / *run, in_tensor + at, q);
        TRY_VOID(take(one_scale_per_run(q.size(), *run), q, x, 0, at));
      } else {
        TRY_VOID(take(layout.granularity, scales_->qparams(), x, in_tensor + at, at));
      }
    }
    sums_.push_back(sums);
    for (size_t c = 0; c < slices_.size(); ++c) {
      const Component& component = layout.components[c];
      out[c] =
          slices_[c].data() + (slice_of(layout, component, unit).offset - slice_of(layout, component, tile).offset);
    }
    pack_tile(layout, unit, codes_.data(), run ? qparams_ : scales_->qparams(),
              scales_ ? scales_->second_scale() : 1.0f, scratch_.data(), out);
  }
  return {};
}

Status TensorSession::run_columns(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const uint64_t width = tile.count(), length = *layout.run_in_tile(), groups = width / length;
  const uint64_t band = unit_lines();
  sums_.resize((width + band - 1) / band);
  qparams_.resize(tile_scale_count(layout, tile));
  codes_.resize(layout.rows * width);
  scratch_.resize(layout.rows * width);
  for (uint64_t row = 0; row < layout.rows; ++row) {
    const std::span<const float> x = widened(row * width, width);
    const std::span<QParams> q = std::span(qparams_).subspan(row * groups, groups);
    const uint64_t first_element = row * layout.columns + tile.begin;
    find_scales(x, length, first_element / length, first_element, q);
    for (uint64_t begin = 0; begin < width; begin += band) {
      const uint64_t count = std::min(band, width - begin), scales = count / length;
      sums_[begin / band].append(encode(one_scale_per_run(scales, length), q.subspan(begin / length, scales),
                                        x.subspan(begin, count), 0, codes_.data() + row * width + begin));
    }
  }
  TRY_VOID(check_columns(tile));
  List<uint8_t*> out(slices_.size());
  for (size_t c = 0; c < slices_.size(); ++c) out[c] = slices_[c].data();
  pack_tile(layout, tile, codes_.data(), qparams_, scales_ ? scales_->second_scale() : 1.0f, scratch_.data(), out);
  return {};
}

}  // namespace wasmquant
