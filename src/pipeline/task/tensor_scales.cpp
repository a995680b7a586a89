// Observing, merging of states, and the scales that result, with those that weights share.
#include "pipeline/task/tensor_scales.h"

#include <algorithm>

#include "core/message.h"
#include "observers/registry.h"

namespace wasmquant {
namespace {

// 128 MiB of floats.
constexpr uint64_t kMaxKeptElements = uint64_t{1} << 25;

bool is_staged(const WeightLayout& layout) noexcept { return layout.stages.size() == 2; }

bool by_range(const QuantizationSpec& spec) noexcept { return needs_only_range(spec); }

Result<TwoStages> stages_of(const WeightLayout& layout) {
  return TwoStages::create(layout.stages[0], layout.stages[1], layout.shape);
}

}  // namespace

std::optional<TwoStages> progressive_stages(const WeightLayout& layout) {
  if (!is_staged(layout)) return std::nullopt;
  auto stages = stages_of(layout);
  if (!stages || stages->is_scale_quant()) return std::nullopt;
  return std::move(*stages);
}

bool TensorScales::needed(const WeightLayout& layout) noexcept {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  if (layout.codes == CodeStorage::ggml_rows || dtype.is_plain_cast() || dtype.is_block()) return false;
  return !layout.scales_in_tiles() || is_staged(layout) || layout.spec.grid.sign_by_data ||
         !info_of(layout.spec.observer).is_per_scale();
}

bool TensorScales::can_join(const WeightLayout& layout) {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  if (layout.codes == CodeStorage::ggml_rows || dtype.is_plain_cast() || dtype.is_block()) return false;
  if (is_staged(layout)) {
    const auto stages = stages_of(layout);
    return stages && stages->can_join();
  }
  if (layout.spec.scale_format == ScaleFormat::e4m3) return true;
  return layout.spec.qscheme == QScheme::per_tensor && by_range(layout.spec);
}

bool TensorScales::shared(const WeightLayout& layout) noexcept { return is_staged(layout) || by_range(layout.spec); }

uint32_t TensorScales::passes(const WeightLayout& layout, bool is_observed) {
  return is_observed || needed(layout) ? passes_of_observer(layout) : 0;
}

uint32_t TensorScales::passes_of_observer(const WeightLayout& layout) {
  return shared(layout) ? 1 : make_observer(layout.spec)->passes();
}

Status TensorScales::check(const WeightLayout& layout, const std::string& name) {
  if (!needed(layout)) return {};
  if (is_staged(layout)) {
    for (const QuantizationSpec& stage : layout.stages) {
      if (!by_range(stage))
        return error_at(ErrorCode::spec_invalid, name, "{} does not work in lists of specs; use min-max observers",
                        info_of(stage.observer).name);
    }
    const auto stages = stages_of(layout);
    return stages ? Status() : error_at(ErrorCode::spec_invalid, name, "{}", stages.error().message);
  }
  const uint64_t elements = layout.granularity.element_count();
  if (shared(layout) || elements <= kMaxKeptElements) return {};
  const auto observer = make_observer(layout.spec);
  if (!observer->keeps_data() || observer->settling_elements(layout.granularity)) return {};
  return error_at(ErrorCode::not_implemented, name,
                  "{} keeps all {} values of this weight in memory; the limit is {}. Use another observer, or a scheme "
                  "with smaller groups",
                  info_of(layout.spec.observer).name, elements, kMaxKeptElements);
}

TensorScales::TensorScales(const WeightLayout& layout, float largest)
    : layout_(layout), spec_(layout.spec), largest_(largest) {
  if (shared(layout))
    ranges_ = std::make_unique<RangeObserver>(layout.granularity, layout.spec);
  else
    observer_ = make_observer(layout.spec);
}

void TensorScales::join(const ValueRange& others) {
  joined_.add(others);
  if (observer_) observer_->join(others);
  finished_ = false;
}

Status TensorScales::begin() { return observer_ ? observer_->begin(0, layout_.shape) : Status(); }

Status TensorScales::next_pass() {
  if (!observer_) return Error{ErrorCode::state_invalid, "", "the observer has already seen all of its data"};
  TRY_VOID(observer_->next_pass());
  return begin();
}

int64_t TensorScales::update(std::span<const float> x, uint64_t at) noexcept {
  finished_ = false;
  return observer_ ? observer_->update(x, at) : ranges_->update(x, at);
}

std::span<const float> TensorScales::state() {
  state_.clear();
  if (ranges_) {
    state_.append(ranges_->min().begin(), ranges_->min().end());
    state_.append(ranges_->max().begin(), ranges_->max().end());
    state_.push_back(joined_.min);
    state_.push_back(joined_.max);
    return state_;
  }
  for (const QParams& q : qparams_) {
    state_.push_back(q.scale);
    state_.push_back(q.zero_point);
  }
  state_.push_back(second_scale_);
  state_.push_back(spec_.dtype == layout_.spec.dtype ? 0.0f : 1.0f);
  return state_;
}

Status TensorScales::take_state(std::span<const float> state, const std::string& name) {
  const size_t scales = layout_.granularity.scale_count();
  if (ranges_ && state.size() == 2 * scales + 2) {
    ranges_->merge(state.first(scales), state.subspan(scales, scales));
    join({state[2 * scales], state[2 * scales + 1]});
    return {};
  }
  if (!ranges_ && state.size() == 2 * scales + 2) {
    qparams_.resize(scales);
    for (size_t i = 0; i < scales; ++i) qparams_[i] = {state[2 * i], state[2 * i + 1]};
    second_scale_ = state[2 * scales];
    constexpr float kNothingBelowZero[] = {0.0f};
    if (state.back() != 0) spec_ = spec_for_data(layout_.spec, kNothingBelowZero);
    finished_ = true;
    return {};
  }
  return error_at(ErrorCode::state_invalid, name, "observer state of another tensor");
}

Status TensorScales::give(std::span<const QParams> qparams, float second_scale, const std::string& name) {
  if (qparams.size() != layout_.granularity.scale_count())
    return error_at(ErrorCode::state_invalid, name, "found {} scales; the layout needs {}", qparams.size(),
                    layout_.granularity.scale_count());
  qparams_.assign(qparams.begin(), qparams.end());
  second_scale_ = second_scale;
  round_to_storage();
  finished_ = true;
  return {};
}

void TensorScales::round_to_storage() noexcept {
  if (layout_.codes == CodeStorage::source_values) return;
  for (QParams& q : qparams_)
    q.scale = std::clamp(storable_scale(layout_, q.scale, second_scale_), -largest_, largest_);
}

Status TensorScales::finish_ranges() {
  if (!is_staged(layout_) && spec_.qscheme == QScheme::per_tensor) ranges_->merge({&joined_.min, 1}, {&joined_.max, 1});
  spec_ = spec_for_data(layout_.spec, ranges_->min());
  if (is_staged(layout_)) {
    TRY(stages, stages_of(layout_));
    TwoStages::Scales scales = stages.scales_of(ranges_->min(), ranges_->max(), joined_);
    qparams_ = std::move(scales.of_codes);
    second_scale_ = scales.other.scale;
    return {};
  }
  ValueRange all = range_of(ranges_->min(), ranges_->max());
  all.add(joined_);
  second_scale_ = second_scale_or_one(all, spec_);
  qparams_.resize(ranges_->min().size());
  qparams_of_ranges(ranges_->min(), ranges_->max(), layout_.spec, second_scale_, qparams_);
  return {};
}

Status TensorScales::finish_observer() {
  TRY(observation, observer_->finish());
  spec_ = observation.spec;
  spec_.grid.sign_by_data = false;
  qparams_ = std::move(observation.qparams);
  second_scale_ = observation.second_scale;
  return {};
}

Status TensorScales::finish(const std::string& name) {
  if (finished_) return {};
  TRY_VOID(ranges_ ? finish_ranges() : finish_observer());
  const bool stores_codes = layout_.codes != CodeStorage::source_values;
  if (stores_codes && spec_.dtype != layout_.spec.dtype)
    return error_at(ErrorCode::format_unsupported, name,
                    "no value is below zero, so its codes would be {} by this dialect, and the file was laid out for "
                    "{}. Make the spec asymmetric, exclude the layer, or write fake-quantized",
                    info_of(spec_.dtype).name, info_of(layout_.spec.dtype).name);
  round_to_storage();
  finished_ = true;
  return {};
}

}  // namespace wasmquant
