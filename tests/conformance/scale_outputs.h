// Scales and zero points in the order of their shape, and codes as numbers: what manifests hold.
#pragma once
#include <span>

#include "golden_case.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace conformance {

/// Adds prefix + "scale" and, for integers, prefix + "zero_point". A per-tensor scale has shape [1].
void add_scales(Outputs& outputs, const std::string& prefix, const wasmquant::Granularity& g,
                const wasmquant::QuantizationSpec& spec, std::span<const wasmquant::QParams> qparams);

/// Unpacked codes, `code_bytes()` each, as numbers with their sign.
Produced codes_as_numbers(std::span<const uint8_t> codes, wasmquant::Dtype dtype, const std::vector<uint64_t>& shape);

}  // namespace conformance
