// The JSON of a safetensors header as it stands: fields and types checked, nothing about sizes or offsets yet.
#pragma once
#include <string_view>

#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant::safetensors {

inline constexpr std::string_view kMetadataName = "__metadata__";

/// Tensors in the order of the text; `begin` and `end` are relative to the data section, as written. `first_byte` is
/// the offset of `text` in its file. Errors: file-invalid, tensor-duplicate, dtype-unsupported.
Result<FileIndex> parse_header(std::string_view text, uint64_t first_byte);

}  // namespace wasmquant::safetensors
