// Codes of groups to which a float is added: value = scale * code + bias, each product and sum rounded to float32 (MLX).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/layout/weight_layout.h"
#include "kernels/kernels.h"

namespace wasmquant {

/// Whether the layout has a bias for each scale. The zero points of its QParams are these biases.
bool has_biases(const WeightLayout& layout) noexcept;

/// Zero points, as scales are found, to biases: -zero_point * scale. If `are_ends`, the scales were found from the runs of
/// `x`, of x.size() / q.size() elements each, and with ScaleSign::signed_ the bias is the end from which codes count, itself.
void biases_of_zero_points(const QuantizationSpec& spec, std::span<const float> x, bool are_ends,
                           std::span<QParams> q) noexcept;

/// Codes of runs of x.size() / q.size() elements: round_half_even((x - bias) / scale), limited to the dtype's.
/// `scratch`: for x.size() elements. Returns the error of the values that are read back.
kernels::ErrorSums quantize_biased(const WeightLayout& layout, std::span<const QParams> q, std::span<const float> x,
                                   std::vector<float>& scratch, uint8_t* codes);

/// Values of codes, values.size() / q.size() in each run; scales and biases as stored.
void values_of_biased(std::span<const QParams> q, const uint8_t* codes, std::span<float> values) noexcept;
/// The same, with scales and biases rounded to their storage.
void read_back_biased(const WeightLayout& layout, std::span<const QParams> q, const uint8_t* codes,
                      std::span<float> values) noexcept;

}  // namespace wasmquant
