// The ops of manifests that the library can do. Each turns a case's parameters and inputs into outputs by role.
#pragma once
#include <string_view>

#include "golden_case.h"

namespace conformance {

using Op = Result<Outputs> (*)(const GoldenCase&);
/// Null for an op that the library does not have.
Op op_named(std::string_view name);

// ---- cast_ops.cpp
Result<Outputs> decode(const GoldenCase& c);
Result<Outputs> cast(const GoldenCase& c);
Result<Outputs> cast_saturate(const GoldenCase& c);
Result<Outputs> cast_nonsaturating(const GoldenCase& c);
Result<Outputs> encode_e8m0_scale(const GoldenCase& c);
Result<Outputs> round(const GoldenCase& c);

// ---- quantize_ops.cpp: one tensor, scales observed or given
Result<Outputs> quantize_observed(const GoldenCase& c);
Result<Outputs> quantize_given(const GoldenCase& c);

// ---- observe_ops.cpp
Result<Outputs> observe_batches(const GoldenCase& c);

// ---- pack_ops.cpp
Result<Outputs> pack_words_of_nibbles(const GoldenCase& c);
Result<Outputs> pack_int3(const GoldenCase& c);
Result<Outputs> pack_float(const GoldenCase& c);
Result<Outputs> export_weight(const GoldenCase& c);

// ---- block_ops.cpp: blocks that share a scale or an exponent
Result<Outputs> mx_quant(const GoldenCase& c);
Result<Outputs> group_float(const GoldenCase& c);
Result<Outputs> nvfp4(const GoldenCase& c);
Result<Outputs> bfp_prime(const GoldenCase& c);
Result<Outputs> bfp16(const GoldenCase& c);

// ---- algorithm_ops.cpp
Result<Outputs> smooth_scales_of(const GoldenCase& c);
Result<Outputs> gptq_weight(const GoldenCase& c);

}  // namespace conformance
