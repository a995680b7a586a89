#include "algorithms/scaling/bias_correction.h"

#include "core/message.h"
#include "kernels/kernels.h"

namespace wasmquant {

Status BiasCorrection::add(std::span<const float> output, std::span<const float> quantized_output) {
  const size_t channels = sums_.size(), row = channels * inner_;
  if (row == 0 || output.empty() || output.size() % row != 0 || quantized_output.size() != output.size())
    return error_at(ErrorCode::shape_mismatch, "", "outputs of {} and {} elements are not the same rows of {} channels",
                    output.size(), quantized_output.size(), channels);
  for (const std::span<const float> values : {output, quantized_output})
    if (const int64_t at = kernels::find_non_finite(values); at >= 0)
      return error_at(ErrorCode::value_not_finite, "", "output element {} is NaN or infinite", at);
  const auto count = static_cast<double>(output.size() / channels);
  for (size_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (size_t begin = c * inner_; begin < output.size(); begin += row)
      for (size_t i = begin; i < begin + inner_; ++i) sum += double{output[i]} - double{quantized_output[i]};
    sums_[c] += sum / count;
  }
  ++batches_;
  return {};
}

Status BiasCorrection::correct(std::span<float> bias) const {
  if (bias.size() != sums_.size())
    return error_at(ErrorCode::shape_mismatch, "", "a bias of {} elements is not one of {} channels", bias.size(),
                    sums_.size());
  if (batches_ == 0) return Error{ErrorCode::state_invalid, "", "no outputs were seen"};
  for (size_t c = 0; c < bias.size(); ++c)
    bias[c] = static_cast<float>(bias[c] + sums_[c] / static_cast<double>(batches_));
  return {};
}

}  // namespace wasmquant
