// Source: transformers, models/gemma4/modeling_gemma4.py, get_per_layer_inputs and project_per_layer_inputs.
#include "model/steps/layer_table.h"

#include <algorithm>
#include <cmath>

#include "kernels/matmul.h"
#include "model/steps/norm.h"

namespace wasmquant::model {
namespace {

/// Tokens that the table lacks have the first row.
size_t row_of(const Architecture& a, int32_t token) noexcept {
  return static_cast<uint32_t>(token) < a.layer_inputs.tokens ? static_cast<size_t>(token) : 0;
}

}  // namespace

bool has_layer_row(const Architecture& a, std::span<const int32_t> tokens, size_t first, size_t end) noexcept {
  return std::any_of(tokens.begin(), tokens.end(), [&](int32_t token) {
    const size_t row = row_of(a, token);
    return row >= first && row < end;
  });
}

void take_layer_rows(const Architecture& a, std::span<const int32_t> tokens, std::span<const float> rows,
                     uint32_t first, std::vector<float>& inputs) {
  const size_t columns = layer_columns(a), count = rows.size() / columns;
  const auto scale = static_cast<float>(std::sqrt(static_cast<double>(a.layer_inputs.width)));
  inputs.resize(tokens.size() * columns);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t row = row_of(a, tokens[i]);
    if (row < first || row - first >= count) continue;
    const float* const from = rows.data() + (row - first) * columns;
    for (size_t j = 0; j < columns; ++j) inputs[i * columns + j] = from[j] * scale;
  }
}

void finish_layer_inputs(const Architecture& a, std::span<const float> projection, std::span<const float> norm,
                         std::span<const float> x, std::vector<float>& inputs) {
  const size_t columns = layer_columns(a), hidden = a.hidden, width = a.layer_inputs.width, tokens = x.size() / hidden;
  std::vector<float> projected(tokens * columns), memory(kernels::matmul_workspace(tokens, columns, hidden));
  kernels::matmul({x.data(), hidden, 1}, {projection.data(), hidden, 1}, hidden, tokens, columns, kernels::Update::set,
                  kernels::Region::all, projected.data(), columns, memory.data());
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(hidden)));
  for (float& value : projected) value *= scale;
  normalize({a.norms.epsilon, a.norms.plus_one}, norm, {}, projected.data(), projected.size() / width, width,
            projected.data());
  constexpr float kHalfRoot = 0.70710678118654752440f;
  for (size_t i = 0; i < projected.size(); ++i) inputs[i] = (projected[i] + inputs[i]) * kHalfRoot;
}

}  // namespace wasmquant::model
