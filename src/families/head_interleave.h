// The order of the rows of q_proj and k_proj, which rotary position embedding rotates in pairs within each head.
// Hugging Face pairs row i of a head's d rows with row i + d/2 ("halves"), llama.cpp pairs rows 2i and 2i + 1
// ("pairs").
//   pairs[2 i + j] = halves[j d/2 + i]    for 0 <= i < d/2, j = 0 or 1, in every head
// Source: llama.cpp, convert_hf_to_gguf.py, LlamaModel.permute: reshape(heads, 2, d/2, …), then swapaxes(1, 2).
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant::families {

/// Converts rows of heads between the orders. Both directions are permutations within each head.
class HeadInterleave {
 public:
  /// `head_rows`: the d rows of a head, even and not 0.
  explicit constexpr HeadInterleave(uint64_t head_rows) noexcept : head_rows_(head_rows) {}

  /// The row in "halves" order that becomes row `row` in "pairs" order.
  constexpr uint64_t halves_row(uint64_t row) const noexcept {
    const uint64_t in_head = row % head_rows_;
    return row - in_head + in_head / 2 + in_head % 2 * (head_rows_ / 2);
  }

  /// Reorders rows of `columns` values, whole heads. `out` has as many values and does not overlap.
  void to_pairs(std::span<const float> halves, uint64_t columns, float* out) const noexcept;
  void to_halves(std::span<const float> pairs, uint64_t columns, float* out) const noexcept;

 private:
  uint64_t head_rows_;
};

}  // namespace wasmquant::families
