// Query heads that share keys are processed together: rows (token, head of the group), as many as fill a product's
// tiles, against the keys visible to the last of these tokens.
#include "model/steps/attention.h"

#include <algorithm>
#include <bit>
#include <span>

#include "kernels/matmul.h"
#include "numeric/exponential.h"

namespace wasmquant::model {
namespace {

using kernels::Region;
using kernels::Update;

constexpr size_t kRows = 128;

void reserve(std::vector<float>& memory, size_t count) {
  if (memory.size() < count) memory.resize(count);
}

void add_slope(float slope, size_t position, std::span<float> scores) noexcept {
  for (float& score : scores) score += slope * static_cast<float>(position++);
}

void softmax_with(float sink, std::span<float> scores, std::vector<float>& memory) {
  memory.assign(scores.begin(), scores.end());
  memory.push_back(sink);
  kernels::softmax(memory);
  std::copy_n(memory.begin(), scores.size(), scores.begin());
}

/// The first key that a token sees.
size_t first_seen(size_t token, size_t window, bool is_chunked) noexcept {
  if (is_chunked) return token - token % window;
  return token >= window ? token - window + 1 : 0;
}

}  // namespace

// Of n heads, a power of 2: 2^(-8 (head + 1) / n); those beyond the largest power of 2 in n are every second one of twice as many.
float slope_of(size_t heads, size_t head) noexcept {
  const size_t whole = std::bit_floor(heads);
  const size_t rank = head < whole ? 2 * (head + 1) : 2 * (head - whole) + 1;
  return static_cast<float>(exp2_of(-8.0 * static_cast<double>(rank) / static_cast<double>(2 * whole)));
}

void attend(const Architecture& a, bool is_sliding, const float* q, const float* k, const float* v,
            std::span<const float> sinks, const RelativeBias& bias, size_t past, size_t length, AttentionMemory& memory,
            float* y) {
  const size_t dim = a.head_dim, group = a.heads / a.kv_heads, q_stride = a.query_columns(), k_stride = a.key_columns(),
               wide = a.value_dim(), v_stride = a.value_columns(), y_stride = a.attended_columns();
  const size_t window = is_sliding ? a.window : length;
  const size_t step = std::max<size_t>(kRows / group, 1);
  const size_t rows_at_most = std::min(step, length - past) * group;
  const size_t ahead = a.is_encoder ? window : 1;  // keys that a token sees from itself on
  const size_t keys_at_most = std::min(length, window + step + ahead);
  reserve(memory.queries, rows_at_most * dim);
  reserve(memory.output, rows_at_most * wide);
  reserve(memory.scores, rows_at_most * keys_at_most);
  reserve(memory.product, std::max(kernels::matmul_workspace(rows_at_most, keys_at_most, dim),
                                   kernels::matmul_workspace(rows_at_most, wide, keys_at_most)));
  for (size_t head = 0; head < a.kv_heads; ++head) {
    for (size_t first = past; first < length;) {
      // Steps and their first keys are those of the whole sequence: products add up terms from the first key on.
      const size_t whole = first - first % step;
      const size_t end = std::min(whole + step, length), rows = (end - first) * group;
      const size_t begin = first_seen(whole, window, a.is_chunked), keys = std::min(end - 1 + ahead, length) - begin;
      float* const scores = memory.scores.data();
      for (size_t row = 0; row < rows; ++row) {
        const float* from = q + (first - past + row / group) * q_stride + (head * group + row % group) * dim;
        for (size_t i = 0; i < dim; ++i) memory.queries[row * dim + i] = from[i] * a.scales.attention;
      }
      matmul({memory.queries.data(), dim, 1}, {k + begin * k_stride + head * dim, k_stride, 1}, dim, rows, keys,
             Update::set, Region::all, scores, keys, memory.product.data());
      for (size_t row = 0; row < rows; ++row) {
        const size_t token = first + row / group;
        const size_t seen = first_seen(token, window, a.is_chunked) - begin,
                     unseen = std::min(token + ahead, length) - begin;
        float* const line = scores + row * keys;
        const std::span<float> visible{line + seen, unseen - seen};
        if (!bias.empty())
          bias.add(head * group + row % group, token, begin + seen, visible);
        else if (a.has_slopes)
          add_slope(slope_of(a.heads, head * group + row % group), begin + seen, visible);
        if (a.scales.attention_cap > 0) kernels::soft_cap(visible, a.scales.attention_cap);
        if (sinks.empty())
          kernels::softmax(visible);
        else
          softmax_with(sinks[head * group + row % group], visible, memory.with_sink);
        std::fill(line, line + seen, 0.0f);
        std::fill(line + unseen, line + keys, 0.0f);
      }
      matmul({scores, keys, 1}, {v + begin * v_stride + head * wide, 1, v_stride}, keys, rows, wide, Update::set,
             Region::all, memory.output.data(), wide, memory.product.data());
      for (size_t row = 0; row < rows; ++row)
        std::copy_n(memory.output.data() + row * wide, wide,
                    y + (first - past + row / group) * y_stride + (head * group + row % group) * wide);
      first = end;
    }
  }
}

}  // namespace wasmquant::model
