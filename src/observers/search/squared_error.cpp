#include "observers/search/squared_error.h"

#include "observers/statistics/pairwise_sum.h"
#include "quantize/quantize.h"

namespace wasmquant {

float SquaredError::operator()(const QuantizationSpec& spec, const QParams& qparams) noexcept {
  if (x_.empty()) return 0;
  Granularity g;
  g.inner = x_.size();
  fake_quantize(g, spec, {&qparams, 1}, x_, 0, squares_.data());
  for (size_t i = 0; i < x_.size(); ++i) squares_[i] = (x_[i] - squares_[i]) * (x_[i] - squares_[i]);
  const size_t rows = x_.size() / row_;  // their sums overwrite the first squares
  for (size_t i = 0; i < rows; ++i) squares_[i] = pairwise_sum({squares_.data() + i * row_, row_});
  return pairwise_sum({squares_.data(), rows});
}

}  // namespace wasmquant
