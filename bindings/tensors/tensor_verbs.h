// One tensor in memory: quantize, dequantize, fake-quantize, by one spec or a JSON list of two (quantize/stages.h).
#pragma once
#include "border/marshal.h"
#include "core/diagnostic.h"

namespace wasmquant::bindings {

/// Where a tensor is in memory; `shape` and `spec` are JSON.
struct GivenTensor {
  Address values;
  const std::string& dtype;
  const std::string& shape;
  const std::string& spec;
};

/// Codes, scales and what else a quantized tensor has: addresses may be 0. `given`: see check_given.
struct GivenCodes {
  Address codes, scale, zero_point, shifts;
  double second_scale;
  const std::string& shape;
  const std::string& spec;
  const std::string& given;
};

/// Errors of these: those of read_stages, read_shape, read_values, granularity_of, TwoStages::create; value-not-finite,
/// value-overflow; dequantize_tensor: those of check_given. Results stay valid until the next of these calls.
Result<Parts> quantize_tensor(const GivenTensor& tensor, List<Diagnostic>& diagnostics);
Result<std::span<const float>> fake_quantize_tensor(const GivenTensor& tensor, List<Diagnostic>& diagnostics);
Result<std::span<const float>> dequantize_tensor(const GivenCodes& codes, List<Diagnostic>& diagnostics);

}  // namespace wasmquant::bindings
