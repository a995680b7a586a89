// What the functions for single tensors share: arguments as the caller gives them, and where results lie.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "marshal.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant::bindings {

/// What a call works on; results stay here until the next call.
struct TensorWork {
  std::vector<float> widened;
  Bytes codes;
  std::vector<float> values, scale, zero_point, min, max;
  std::vector<uint8_t> exponents, shifts;
};
TensorWork& work();

/// Errors: argument-invalid, shape-mismatch.
Result<std::vector<uint64_t>> read_shape(const std::string& text);
uint64_t count_of(const std::vector<uint64_t>& shape);
/// float32 values of F32, F16 or BF16 memory. Error: dtype-unsupported.
Result<std::span<const float>> read_values(Address address, const std::string& dtype, uint64_t count);
/// One spec, or a list of two. Error: spec-invalid with the first problem.
Result<List<QuantizationSpec>> read_stages(const std::string& text, List<Diagnostic>& diagnostics);
/// One spec. Errors: those of read_stages; spec-invalid for a list.
Result<QuantizationSpec> read_spec(const std::string& text, List<Diagnostic>& diagnostics);

/// Scales and zero points in the order of the scale shape; zero points only for integer dtypes.
void set_qparams(json::Value& out, const Granularity& g, const QuantizationSpec& spec,
                 std::span<const QParams> qparams);
/// The reverse, from memory; zero_point 0: none. One per scale, internal order.
std::vector<QParams> read_qparams(const Granularity& g, Address scale, Address zero_point);

/// The reply {pointer, count} of values that stay where they are until the next call.
std::string values_reply(const std::vector<float>& y);

}  // namespace wasmquant::bindings
