// Ranges chosen from a histogram. `min` and `max` are the range of the data on input (min > max: none was seen) and the
// chosen range on output. Sums over bins run from the first to the last, in float64.
#pragma once
#include "observers/statistics/histogram.h"
#include "observers/statistics/observation.h"

namespace wasmquant {

/// Leaves out the largest values, and for histograms of both signs the smallest as well: (100 - percent) % at each end.
///   magnitudes  (0, left edge of the first bin at which the share of values so far, in float32, reaches percent / 100)
///               (AMD Quark, spec 4.7)
///   both signs  outer edges of the remaining bins. Quark returns (min, min) there; this form is specific to this
/// library.
void choose_percentile(const Histogram& histogram, double percent, float& min, float& max) noexcept;

/// The range with the least squared error of fake quantization, by bin centres, among 256 that shrink evenly to zero;
/// for histograms of both signs each end is then searched separately. Ties go to the wider range.
void choose_least_error(const Histogram& histogram, const QuantizationSpec& spec, Observation& observation);

/// (0, centre of a bin), the best bin from `first` (negative: from the end) to the last. Errors are means over bins.
/// (AMD Quark, spec 4.8: always three candidates of 2048.)
void choose_last_bins(const Histogram& histogram, const QuantizationSpec& spec, int64_t first,
                      Observation& observation);

/// Narrows the range bin by bin, always at the end with fewer values, while the squared error of 2^bits uniform codes
/// falls; values are assumed evenly spread within their bin. (torch.ao.quantization.HistogramObserver.)
void choose_least_squares(const Histogram& histogram, uint32_t bits, float& min, float& max) noexcept;

/// For a histogram of [-t, t]: the range around its middle, of `quantized_bins` bins or more, whose distribution is
/// nearest in Kullback-Leibler divergence to itself in `quantized_bins` bins; values outside count at the ends.
/// (ONNX Runtime's entropy calibration, after TensorRT's.)
void choose_entropy(const Histogram& histogram, uint32_t quantized_bins, float& min, float& max);

/// For a histogram of magnitudes: the clipping threshold with the least Jeffreys divergence between the cumulative
/// shares of the values and of their 2^(bits - 1) quantized values. (AMD Quark, spec 4.10; Settle et al., "Quantizing
/// Convolutional Neural Networks for Low-Power High-Throughput Inference Engines", 2018, algorithm 1.) Quark uses
/// sqrt(count) bins; the histogram's are merged to about as many.
double kl_j_threshold(const Histogram& histogram, uint32_t bits);

}  // namespace wasmquant
