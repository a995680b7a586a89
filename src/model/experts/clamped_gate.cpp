#include "model/experts/clamped_gate.h"

#include <algorithm>

#include "numeric/exponential.h"

namespace wasmquant::model {

void clamped_gate(const Routing& routing, std::span<const float> biases, uint32_t expert, std::span<const float> x,
                  std::vector<float>& y) {
  const size_t columns = 2 * size_t{routing.width};
  const std::span<const float> own = biases.subspan(expert * columns, columns);
  const float limit = routing.gate_limit;
  y.resize(x.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t column = 2 * i % columns;
    const float gate = std::min(x[2 * i] + own[column], limit);
    const float up = std::clamp(x[2 * i + 1] + own[column + 1], -limit, limit);
    const double opposite = exp2_of(-double{gate} * double{routing.gate_slope} / kLn2);
    y[i] = static_cast<float>(gate / (1 + opposite) * (up + 1));
  }
}

}  // namespace wasmquant::model
