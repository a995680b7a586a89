// Cross-layer equalization: where a layer's output channels reach another layer only through ReLU, pooling or the like,
// a channel may be divided by s at its source and multiplied by s at its sink.
//   s = sqrt(r1) / sqrt(r2), r1 = max |weights that make the channel|, r2 = max |weights that read it|
// Channels with r1 or r2 <= 1e-9 keep s = 1. Source: M. Nagel et al., "Data-Free Quantization Through Weight
// Equalization and Bias Correction", 2019; Brevitas' choices (aihwkit-brevitas 3).
#pragma once
#include <cstdint>
#include <span>

#include "core/list.h"
#include "core/result.h"

namespace wasmquant {

/// Names and defaults of Quark's brevitas dialect (equalize_iterations, equalize_merge_bias).
struct EqualizationOptions {
  uint32_t iterations = 20;
  bool merge_bias = true;   // the bias counts as one more weight of its channel, see below
  double threshold = 0.05;  // no further iteration once all |1 - s| are below
};

/// weight [channels, columns]; bias [channels], or empty.
struct EqualizedSource {
  std::span<float> weight, bias;
};
/// weight [rows, channels, inner]; inner is 1 for linear layers, the kernel's elements for convolutions.
struct EqualizedSink {
  std::span<float> weight;
  size_t inner = 1;
};
/// Layers that share their channels: a channel's ranges are the largest over all sources and all sinks.
struct EqualizedRegion {
  size_t channels = 0;
  List<EqualizedSource> sources;
  List<EqualizedSink> sinks;
};

/// Rescales the weights in place. With merge_bias, bias / k counts, where f = |bias| / |W| of each weight (at least
/// 1e-9) and k = 5 or 2 (f's median > 100 or mean > 1000, or not) if max|bias| < 10 and max|bias| < 20 max|W|; else 20
/// (median > 30 or mean > 500), 10 (> 15 or > 250) or 5. Errors, with nothing changed: shape-mismatch,
/// value-not-finite.
Status equalize(std::span<EqualizedRegion> regions, const EqualizationOptions& options);

}  // namespace wasmquant
