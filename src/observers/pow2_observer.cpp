#include "observers/pow2_observer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numeric/minifloat.h"

#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr int32_t kLargestPosition = 127;                 // scales of a range are 2^-127..2^127
constexpr float kMiddle = 127, kMiddleOfSymmetric = 128;  // zero points of symmetric uint8

// -log2(scale), rounded. log2 of a float is never halfway: 1.5 * 2^e lies above, and the square root of 2 is no float.
int32_t position_of(float scale) noexcept {
  const double clamped = std::clamp(static_cast<double>(scale), 0x1p-127, 0x1p127);
  const auto bits = std::bit_cast<uint64_t>(clamped);
  const auto exponent = static_cast<int32_t>(bits >> 52) - 1023;
  const double mantissa = clamped * power_of_two(-exponent);
  return -(exponent + (mantissa * mantissa > 2 ? 1 : 0));
}

}  // namespace

float Pow2QParams::scale() const noexcept {
  return static_cast<float>(power_of_two(-std::max(position, -kLargestPosition)));
}

Pow2QParams pow2_qparams_of(float min, float max, const QuantizationSpec& spec) noexcept {
  if (min > max) return {};
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
  const float first = std::trunc(lowest - min / scale);  // zero point of the scale that is no power of two yet
  // Quark: quant_min - round(min((quant_min - first) * s, 0) / s). Powers of two leave no rounding in that.
  return {position_of(scale), lowest - std::min(lowest - first, 0.0f)};
}

bool Pow2Observer::advance(Running& running) const {
  const Batch& batch = batches()[running.next++];
  const std::span<const float> min = batch.range.min(), max = batch.range.max();
  const bool starts =
      running.next == 1 || batch.granularity.scale_shape != batches()[running.next - 2].granularity.scale_shape;
  if (starts) {
    running.min.assign(min.begin(), min.end());
    running.max.assign(max.begin(), max.end());
    return true;
  }
  for (size_t i = 0; i < min.size(); ++i) {
    running.min[i] = std::min(running.min[i], min[i]);
    running.max[i] = std::max(running.max[i], max[i]);
  }
  return false;
}

std::vector<Pow2QParams> Pow2Observer::qparams_of(const Running& running) const {
  std::vector<Pow2QParams> all(running.min.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = pow2_qparams_of(running.min[i], running.max[i], spec());
  const auto is_middle = [](const Pow2QParams& q) { return q.zero_point == kMiddle; };
  if (spec().symmetric && spec().dtype == Dtype::uint8 && std::all_of(all.begin(), all.end(), is_middle))
    for (Pow2QParams& q : all) q.zero_point = kMiddleOfSymmetric;
  return all;
}

void Pow2Observer::start_pass() {
  errors_.assign(batches().size(), Errors{});
  running_ = {};
}

void Pow2Observer::start_batch(size_t index, const Granularity& granularity) {
  counted_ = index;
  granularity_ = granularity;
  if (running_.next > index + 1) running_ = {};
  while (running_.next <= index) advance(running_);
  const std::vector<Pow2QParams> middle = qparams_of(running_);
  int32_t largest = kLargestPosition;
  candidates_.clear();
  for (int32_t step = 0; step < kSteps; ++step)
    for (Pow2QParams q : middle) {
      largest = std::min(largest, q.position);
      q.position += step - kSteps / 2;
      candidates_.push_back({q.scale(), q.zero_point});
    }
  unit_ = power_of_two(largest);
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
                        info_of(spec().dtype).bits, errors_[counted_][step]);
    }
  }
}

void Pow2Observer::merge_counts(const Observer& other) noexcept {
  const std::vector<Errors>& added = static_cast<const Pow2Observer&>(other).errors_;  // same spec, so the same class
  for (size_t i = 0; i < errors_.size() && i < added.size(); ++i)
    for (size_t step = 0; step < kSteps; ++step) errors_[i][step].add(added[i][step]);
}

void Pow2Observer::choose(Observation& observation) const {
  Running running;
  std::vector<Pow2QParams> calls;  // [calls][scales]
  while (running.next < batches().size()) {
    const size_t index = running.next;
    if (advance(running)) calls.clear();
    if (votes_ == Votes::last_batch && running.next < batches().size()) continue;
    std::vector<Pow2QParams> found = qparams_of(running);
    if (passes() == 2) {
      const Errors& errors = errors_[index];
      const auto best = static_cast<int32_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
      for (Pow2QParams& q : found) q.position += best - kSteps / 2;
    }
    calls.insert(calls.end(), found.begin(), found.end());
  }
  observation.min = running.min;
  observation.max = running.max;
  const size_t scales = running.min.size();
  observation.qparams.resize(scales);
  for (size_t scale = 0; scale < scales; ++scale) {
    size_t most = 0;
    // A pair is counted in full where it stands first; nothing can win once fewer calls are left than it has.
    for (size_t call = scale; call < calls.size() && (calls.size() - call) / scales >= most; call += scales) {
      size_t count = 0;
      for (size_t later = call; later < calls.size(); later += scales) count += calls[later] == calls[call] ? 1 : 0;
      if (count > most) {
        most = count;
        observation.qparams[scale] = {calls[call].scale(), calls[call].zero_point};
      }
    }
  }
}

}  // namespace wasmquant
