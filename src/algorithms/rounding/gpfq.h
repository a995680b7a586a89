// GPFQ: columns are quantized one after another, each compensating for the effect of the earlier ones on the layer's
// output. With x_t the inputs of column t and x'_t the same in the quantized network:
//   u = sum_{s <= t} w_s x_s - sum_{s < t} q_s x'_s,   a_t = <u, x'_t> / |x'_t|^2 (0 without input),   q_t = QDQ(a_t)
// which needs only the products <x_s, x'_t> and <x'_s, x'_t>.
// GPFA2Q bounds the sum of codes so that the layer's accumulator of P bits does not overflow: |a_t| <= s max(T - z, 0),
// z = sum_{s < t} |q_s| / s of the row, T = (2^(P-1) - 1) 2^(signed - bits) for input codes of `bits` bits.
// Source: J. Zhang, Y. Zhou, R. Saab, "Post-training Quantization for Neural Networks with Provable Guarantees", 2023;
// I. Colbert et al., "A2Q", 2023; Brevitas' form (aihwkit-brevitas 3).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "config/spec/spec.h"
#include "core/result.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Products of a layer's inputs, summed over calibration. Rows are summed in order, in panels that ignore batch
/// boundaries: the result is the same to the bit however rows are split over calls.
class GpfqInputs {
 public:
  /// For inputs with this many features.
  explicit GpfqInputs(size_t columns);

  /// x and quantized [tokens, columns]: the same tokens in the float and in the quantized network; Brevitas 0.10.3
  /// records them before the layer's own input quantizer, 0.12.1 after it. Errors, with the state unchanged:
  /// shape-mismatch, value-not-finite (row and column).
  Status add(std::span<const float> x, std::span<const float> quantized);
  /// Call when all rows are in, before reading the products.
  void finish() noexcept;

  size_t columns() const noexcept { return columns_; }
  /// [columns, columns]: <x_s, x'_t> at row s, column t, and <x'_s, x'_t>.
  std::span<const float> cross() const noexcept { return cross_; }
  std::span<const float> square() const noexcept { return square_; }

 private:
  void sum_panel() noexcept;

  size_t columns_, panel_rows_ = 0;
  std::vector<float> panel_, quantized_panel_;  // rows not summed yet, [kProductDepth, columns]
  std::vector<float> cross_, square_;
};

/// Options of GPFQ and GPFA2Q.
struct GpfqOptions {
  bool act_order = false;         // columns by descending |x'_t|^2, equal ones by index
  uint32_t accumulator_bits = 0;  // P of GPFA2Q; 0: no bound
  uint32_t input_bits = 8;        // of the input codes, for that bound
  bool input_is_signed = true;
};

/// weight [rows, columns] becomes its quantized values; `codes` gets one code per element in the same order,
/// code_bytes_of(spec) each (wider codes aligned to their size). `qparams` are the layer's scales from the original
/// weight: one, one per row, or one per group of columns of each row (ColumnGroups). Rows are independent.
/// Errors: shape-mismatch, spec-invalid, value-not-finite (names the element), those of granularity_of.
Status gpfq(const GpfqInputs& inputs, const QuantizationSpec& spec, std::span<const QParams> qparams,
            const GpfqOptions& options, uint64_t rows, std::span<float> weight, std::span<uint8_t> codes);

}  // namespace wasmquant
