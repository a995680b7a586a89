// The two observers with power-of-two scales, and how votes of batches are counted.
#include "observers/pow2_observer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr float kMiddle = 127, kMiddleOfSymmetric = 128;  // zero points of symmetric uint8

// 2^round(log2(scale)). log2 of a float is never halfway: sqrt(2) is not a float.
float nearest_power_of_two(float scale) noexcept {
  const double clamped = std::clamp(static_cast<double>(scale), 0x1p-127, 0x1p127);
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(clamped) & ~kMantissa);
  const double mantissa = clamped / power;
  return static_cast<float>(mantissa * mantissa > 2 ? 2 * power : power);
}

// Steps up from the largest scale stop at the largest float32 power.
float scaled(float scale, float factor) noexcept { return std::min(scale, 0x1p127f / factor) * factor; }

}  // namespace

QParams pow2_qparams_of(float min, float max, const QuantizationSpec& spec) noexcept {
  if (min > max) return {1, 0};
  min = std::min(min, 0.0f);
  max = std::max(max, 0.0f);
  if (spec.symmetric) {
    max = std::max(-min, max);
    min = -max;
  }
  const DtypeInfo& dtype = info_of(spec.dtype);
  const auto lowest = static_cast<float>(dtype.quant_min);
  const auto steps = static_cast<float>(dtype.quant_max - dtype.quant_min);
  const float range = max - min;
  float scale = std::isfinite(range) ? range / steps : max / steps - min / steps;
  if (scale == 0) scale = 1;
  const float first = std::trunc(lowest - min / scale);  // zero point of the scale before it becomes a power of two
  // Quark: quant_min - round(min((quant_min - first) * s, 0) / s). With powers of two this does not round.
  return {nearest_power_of_two(scale), std::min(lowest - std::min(lowest - first, 0.0f), largest_zero_point(spec))};
}

bool Pow2Observer::advance(Running& running) const {
  const RangeObserver& next = range(running.next);
  const bool starts =
      running.next == 0 || next.granularity().scale_shape != range(running.next - 1).granularity().scale_shape;
  ++running.next;
  if (starts) {
    running.min.assign(next.min().begin(), next.min().end());
    running.max.assign(next.max().begin(), next.max().end());
    return true;
  }
  for (size_t i = 0; i < running.min.size(); ++i) {
    running.min[i] = std::min(running.min[i], next.min()[i]);
    running.max[i] = std::max(running.max[i], next.max()[i]);
  }
  return false;
}

std::vector<QParams> Pow2Observer::qparams_of(const Running& running) const {
  std::vector<QParams> all(running.min.size());
  bool all_middle = spec().symmetric && spec().dtype == Dtype::uint8;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = pow2_qparams_of(running.min[i], running.max[i], spec());
    all_middle &= all[i].zero_point == kMiddle;
  }
  for (size_t i = 0; i < all.size() && all_middle; ++i) all[i].zero_point = kMiddleOfSymmetric;
  return all;
}

void Pow2Observer::start_pass() {
  errors_.assign(kSteps * batch_count(), ExactSum{});
  running_ = {};
}

void Pow2Observer::start_batch(size_t index, const Granularity& granularity) {
  counted_ = index;
  granularity_ = granularity;
  if (running_.next > index + 1) running_ = {};
  while (running_.next <= index) advance(running_);
  const std::vector<QParams> middle = qparams_of(running_);
  float largest = 0;
  candidates_.clear();
  for (const float factor : kFactors)
    for (const QParams& q : middle) {
      largest = std::max(largest, q.scale);
      candidates_.push_back({scaled(q.scale, factor), q.zero_point});
    }
  unit_ = 1 / static_cast<double>(largest);
}

void Pow2Observer::count(std::span<const float> x, uint64_t at) noexcept {
  constexpr size_t kBlock = 512;
  float y[kBlock], finite[kBlock];
  const size_t scales = candidates_.size() / kSteps;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::span<const float> block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    const bool all_finite = kernels::find_non_finite(block) < 0;
    for (size_t i = 0; i < block.size() && !all_finite; ++i) finite[i] = std::isfinite(block[i]) ? block[i] : 0;
    for (size_t step = 0; step < kSteps; ++step) {
      const std::span<const QParams> qparams = std::span<const QParams>(candidates_).subspan(step * scales, scales);
      fake_quantize(granularity_, spec(), qparams, block, at + begin, y);
      for (size_t i = 0; i < block.size() && !all_finite; ++i)
        if (!std::isfinite(block[i])) y[i] = 0;
      add_squared_error(all_finite ? block : std::span<const float>(finite, block.size()), y, unit_,
                        info_of(spec().dtype).bits, errors_[kSteps * counted_ + step]);
    }
  }
}

void Pow2Observer::merge_counts(const Observer& other) noexcept {
  const std::vector<ExactSum>& added = static_cast<const Pow2Observer&>(other).errors_;  // same spec, so the same class
  for (size_t i = 0; i < errors_.size() && i < added.size(); ++i) errors_[i].add(added[i]);
}

void Pow2Observer::choose(Observation& observation) const {
  Running running;
  std::vector<QParams> calls;  // [calls][scales]
  while (running.next < batch_count()) {
    const ExactSum* errors = errors_.data() + kSteps * running.next;
    if (advance(running)) calls.clear();
    if (votes_ == Votes::last_batch && running.next < batch_count()) continue;
    const std::vector<QParams> found = qparams_of(running);
    const float factor = passes() == 2 ? kFactors[std::min_element(errors, errors + kSteps) - errors] : 1;
    for (const QParams& q : found) calls.push_back({scaled(q.scale, factor), q.zero_point});
  }
  observation.min = running.min;
  observation.max = running.max;
  const size_t scales = running.min.size();
  observation.qparams.resize(scales);
  for (size_t scale = 0; scale < scales; ++scale) {
    size_t most = 0;
    // Counts a pair in full where it first occurs; stops once too few calls are left to win.
    for (size_t call = scale; call < calls.size() && (calls.size() - call) / scales >= most; call += scales) {
      size_t count = 0;
      for (size_t later = call; later < calls.size(); later += scales)
        count += calls[later].scale == calls[call].scale && calls[later].zero_point == calls[call].zero_point ? 1 : 0;
      if (count > most) {
        most = count;
        observation.qparams[scale] = calls[call];
      }
    }
  }
}

std::unique_ptr<Observer> make_pow2_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  return std::make_unique<Pow2Observer>(spec, info_of(spec.observer).method == ObserverMethod::pow2_min_mse,
                                        options.votes);
}

}  // namespace wasmquant
