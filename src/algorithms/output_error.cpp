#include "algorithms/output_error.h"

#include <algorithm>

namespace wasmquant {
namespace {

constexpr size_t kStripRows = 64;

}  // namespace

OutputError::OutputError(std::span<const float> x, size_t columns)
    : tokens_(columns == 0 ? 0 : x.size() / columns), columns_(columns), x_(tokens_ * columns) {
  for (size_t t = 0; t < tokens_; ++t)
    for (size_t j = 0; j < columns_; ++j) x_[j * tokens_ + t] = x[t * columns_ + j];
}

void OutputError::sum_squares(ConstMatrix d, size_t first, size_t count, std::span<double> sums) const noexcept {
  std::vector<float> transposed(count * kStripRows), output(kStripRows * tokens_);
  for (size_t row = 0; row < sums.size(); row += kStripRows) {
    const size_t rows = std::min(kStripRows, sums.size() - row);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < count; ++j) transposed[j * kStripRows + i] = d.data[(row + i) * d.stride + j];
    std::fill(output.begin(), output.end(), 0.0f);
    add_product(1, {transposed.data(), kStripRows}, {x_.data() + first * tokens_, tokens_}, count, rows, tokens_,
                {output.data(), tokens_});
    for (size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (size_t t = 0; t < tokens_; ++t) sum += double{output[i * tokens_ + t]} * output[i * tokens_ + t];
      sums[row + i] = sum;
    }
  }
}

}  // namespace wasmquant
