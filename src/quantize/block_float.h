// Tensors of block dtypes: mx6, mx9, bfp16 (numeric/block_float.h). Blocks run along ch_axis; the last of each line may
// be short, as if padded with zeros.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quantize/granularity.h"

namespace wasmquant {

/// Laid out like the tensor: codes one per element; exponents in the place of scales (internal order of Granularity);
/// shifts [outer, ceil(axis / 2), inner], one byte (0 or 1) per pair of neighbours along the axis, or empty.
struct BlockFloatTensor {
  std::vector<int8_t> codes;
  std::vector<uint8_t> exponents;
  std::vector<uint8_t> shifts;
};

/// A whole tensor. Non-finite elements count as zero.
BlockFloatTensor quantize_blocks(const Granularity& g, const QuantizationSpec& spec, std::span<const float> x);
/// The values of its codes.
void dequantize_blocks(const Granularity& g, const QuantizationSpec& spec, const BlockFloatTensor& t, float* y);

/// x to its quantized values. x is whole lines [axis, inner] of the tensor. mx6 and mx9 leave non-finite elements
/// unchanged, bfp16 makes them zero (AMD Quark, spec 3.5 and 3.6). y may be x.
void fake_quantize_blocks(const Granularity& g, const QuantizationSpec& spec, std::span<const float> x, float* y);

}  // namespace wasmquant
