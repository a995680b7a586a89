// Cases of GGUF block types: {"id", "type", "type_id", "input": key of F32 [rows, columns], "bytes": key of U8 [rows,
// row bytes], "compare"}, and optionally "importance": key of F32 [columns], "values": key of F32, what the bytes mean.
#pragma once
#include <string>

#include "core/json.h"
#include "core/result.h"
#include "tensors.h"

namespace conformance {

/// Empty, or the first difference. not-implemented: the case is skipped.
wasmquant::Result<std::string> run_ggml_case(const wasmquant::json::Value& manifest_case, const std::string& file,
                                             TensorFiles& tensors);

}  // namespace conformance
