#include "algorithms/rounding/gptaq.h"

#include <algorithm>

#include "kernels/matmul.h"

namespace wasmquant {

std::vector<float> input_drift(const GpfqInputs& inputs, double factor) {
  std::vector<float> out(inputs.cross().size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>((double{inputs.cross()[i]} - inputs.square()[i]) * factor);
  return out;
}

void add_drift(ErrorFeedback& feedback, std::span<const float> drift, double alpha) {
  const size_t n = feedback.columns();
  const float* const u = feedback.factor.data();
  std::vector<float> ordered(n * n), product(n * n), workspace(kernels::matmul_workspace(n, n, n));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) ordered[i * n + j] = drift[feedback.order[i] * n + feedback.order[j]];
  kernels::matmul({ordered.data(), n, 1}, {u, n, 1}, n, n, n, kernels::Update::set, kernels::Region::upper,
                  product.data(), n, workspace.data());
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      float& value = product[i * n + j];
      value = j > i ? static_cast<float>(value * alpha) : 0.0f;
    }
  kernels::matmul({product.data(), n, 1}, {u, 1, n}, n, n, n, kernels::Update::set, kernels::Region::all,
                  ordered.data(), n, workspace.data());
  feedback.drift = std::move(ordered);
}

}  // namespace wasmquant
