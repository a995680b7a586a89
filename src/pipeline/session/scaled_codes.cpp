#include "pipeline/session/scaled_codes.h"

#include <algorithm>

#include "checkpoint/layout/biased_codes.h"
#include "observers/search/per_scale_search.h"
#include "observers/statistics/contiguous.h"
#include "quantize/quantize.h"

namespace wasmquant {

ScaledCodes::ScaledCodes(const EncoderInput& in) : in_(in), stages_(progressive_stages(in.task.layout)) {}

void ScaledCodes::find_scales(std::span<const float> x, uint64_t length, uint64_t first_scale, uint64_t first_element,
                              std::span<QParams> qparams) {
  const WeightLayout& layout = in_.task.layout;
  if (in_.scales) {
    const std::span<const QParams> known = in_.scales->qparams().subspan(first_scale, qparams.size());
    std::copy(known.begin(), known.end(), qparams.begin());
    if (has_biases(layout)) biases_of_zero_points(layout.spec, x, false, qparams);
    return;
  }
  if (needs_only_range(layout.spec))
    observe_contiguous(x, length, layout.spec, qparams);
  else
    search_scales(x, length, first_element, qparams);
  if (layout.codes != CodeStorage::source_values && layout.spec.scale_format != ScaleFormat::float32)
    for (QParams& q : qparams) q.scale = storable_scale(layout, q.scale, 1.0f);
  if (in_.check.saturates())
    for (QParams& q : qparams) q.scale = std::min(q.scale, in_.check.limit().largest_scale);
  if (has_biases(layout)) biases_of_zero_points(layout.spec, x, true, qparams);
}

// For observers that search each scale separately.
void ScaledCodes::search_scales(std::span<const float> x, uint64_t length, uint64_t first_element,
                                std::span<QParams> qparams) {
  const QuantizationSpec& spec = in_.task.layout->spec;
  const std::vector<float>& importance = in_.task.importance;
  PerScaleSearch search(spec, info_of(spec.observer).method, spec.observer_options);
  for (size_t i = 0; i < qparams.size(); ++i) {
    const uint64_t column = (first_element + i * length) % in_.task.layout->columns;
    qparams[i] =
        search(x.subspan(i * length, length), importance.empty() ? nullptr : importance.data() + column).qparams;
  }
}

kernels::ErrorSums ScaledCodes::encode(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x,
                                       uint64_t begin, uint8_t* codes) {
  const WeightLayout& layout = in_.task.layout;
  if (has_biases(layout)) return quantize_biased(layout, qparams, x, first_stage_, codes);
  if (!stages_) return quantize_measured(g, layout.spec, qparams, x, begin, codes);
  const QParams other{second_scale(), 0};
  first_stage_.resize(x.size());
  stages_->numbers_of(other, x, first_stage_.data());
  quantize(g, layout.spec, qparams, kernels::Path::real, first_stage_, begin, codes);
  dequantize(g, layout.spec, qparams, codes, x.size(), begin, first_stage_.data());
  stages_->values_of(other, first_stage_);
  return kernels::error_between(x, first_stage_.data());
}

std::span<const float> ScaledCodes::decode(const Granularity& g, std::span<const QParams> qparams, const uint8_t* codes,
                                           uint64_t count, uint64_t begin) {
  const WeightLayout& layout = in_.task.layout;
  decoded_.resize(count);
  if (has_biases(layout)) {
    read_back_biased(layout, qparams, codes, decoded_);
  } else {
    dequantize(g, layout.spec, qparams, codes, count, begin, decoded_.data());
    if (stages_) stages_->values_of({second_scale(), 0}, decoded_);
  }
  return decoded_;
}

void ScaledCodes::simulate(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x,
                           uint64_t begin, std::span<float> y) const {
  const QuantizationSpec& spec = in_.scales ? in_.scales->spec() : in_.task.layout->spec;
  if (!stages_) return fake_quantize(g, spec, qparams, x, begin, y.data());
  const QParams other{second_scale(), 0};
  stages_->numbers_of(other, x, y.data());
  fake_quantize(g, spec, qparams, y, begin, y.data());
  stages_->values_of(other, y);
}

}  // namespace wasmquant
