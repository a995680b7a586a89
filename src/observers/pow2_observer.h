// Power-of-two scales for integer dtypes. The range after each batch gives one pair (scale, zero point) per scale; the
// most frequent pair over all batches wins, ties go to the first.
//   PowOf2MinMax  the power of two nearest to (max - min) / (quant_max - quant_min)
//   PowOf2MinMSE  of that and two steps to either side, the one with the least squared error over the batch, the same
//                 step for all channels; ties go to the largest
// Source: AMD Quark, spec 4.4, 4.5.
#pragma once
#include <iterator>

#include "observers/observer.h"
#include "observers/statistics/exact_sum.h"

namespace wasmquant {

/// min > max (nothing seen) and the range 0 give scale 1. Scales are 2^-127..2^127.
QParams pow2_qparams_of(float min, float max, const QuantizationSpec& spec) noexcept;

/// Observer of both PowOf2 methods.
class Pow2Observer final : public Observer {
 public:
  Pow2Observer(const QuantizationSpec& spec, bool least_error, Votes votes)
      : Observer(spec, least_error ? 2 : 1, !spec.is_dynamic), votes_(votes) {}

 private:
  static constexpr float kFactors[] = {4, 2, 1, 0.5f, 0.25f};  // times the scale of the range
  static constexpr size_t kSteps = std::size(kFactors);

  // Ranges accumulated up to batch `next` (exclusive) since the number of channels last changed.
  struct Running {
    std::vector<float> min, max;
    size_t next = 0;
  };
  // Adds the next batch. Returns true if it starts over.
  bool advance(Running& running) const;
  std::vector<QParams> qparams_of(const Running& running) const;

  void start_pass() override;
  void start_batch(size_t index, const Granularity& granularity) override;
  void count(std::span<const float> x, uint64_t at) noexcept override;
  void merge_counts(const Observer& other) noexcept override;
  void choose(Observation& observation) const override;

  Votes votes_;
  std::vector<ExactSum> errors_;  // [batches][kSteps]
  Running running_;
  // The batch being counted.
  size_t counted_ = 0;
  Granularity granularity_;
  std::vector<QParams> candidates_;  // [kSteps][scales]
  double unit_ = 1;                  // 1 / the largest scale of the range; errors are measured in this unit
};

}  // namespace wasmquant
