// The JSON of a safetensors header: checks fields and types, not sizes or offsets.
#pragma once
#include <string_view>

#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant::safetensors {

inline constexpr std::string_view kMetadataName = "__metadata__";

/// Tensors in text order; `begin` and `end` are relative to the data section, as written. `first_byte`: offset of
/// `text` in its file. Errors: file-invalid, tensor-duplicate, dtype-unsupported.
Result<FileIndex> parse_header(std::string_view text, uint64_t first_byte);

}  // namespace wasmquant::safetensors
