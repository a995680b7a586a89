// Arguments and results of the functions for single tensors.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "border/marshal.h"
#include "core/bytes.h"
#include "core/diagnostic.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant::bindings {

/// Data of one call; results stay here until the next call.
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

/// The first `count` codes of work() as "codes", and what array they are: {"bytes", "signed"}.
void add_codes(Parts& out, const QuantizationSpec& spec, size_t count);
/// "scale" and, for integer dtypes, "zeroPoint" (float32), in scale-shape order; {"zeroPointType"}.
void add_qparams(Parts& out, const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams);
/// The reverse of add_qparams, from memory to internal order; zero_point 0: none.
std::vector<QParams> read_qparams(const Granularity& g, Address scale, Address zero_point);

/// Error: value-overflow naming the scale, if a range was too wide for a float32 scale or zero point.
Status check_finite(std::span<const QParams> qparams);
/// Whether these are the codes and scales of a tensor with that spec: `given` is JSON {codes, zeroPoint: name of their
/// array's class, or null, scaleShape, pairShifts: number of elements}. Codes must lie in the grid of their dtype.
/// Errors: argument-invalid, shape-mismatch.
Status check_given(const Granularity& g, const QuantizationSpec& spec, const std::string& given, Address codes,
                   uint64_t count);

}  // namespace wasmquant::bindings
