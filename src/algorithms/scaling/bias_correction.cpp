#include "algorithms/scaling/bias_correction.h"

namespace wasmquant {

void correct_bias(std::span<const float> weight, std::span<const float> quantized, std::span<const double> sums,
                  uint64_t tokens, std::span<float> bias) noexcept {
  size_t at = 0;
  for (float& value : bias) {
    double change = 0;
    for (const double sum : sums) {
      change += (double{weight[at]} - quantized[at]) * sum;
      ++at;
    }
    value = static_cast<float>(value + change / static_cast<double>(tokens));
  }
}

}  // namespace wasmquant
