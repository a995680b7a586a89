// Places the tensors of safetensors files: headers, offsets, and the bytes that are known without reading weights. Each
// tensor is in the file that its source is in.
//
// Data order: 1. tensors whose values follow from shapes (I64 shapes)  2. each source tensor's components together,
// codes first, in the source's order. An append-only sink can then be fed while holding back no more than one tensor's
// scales. Tensors whose bytes are multiples of 8 come first, then of 4, 2, 1, so that everything stays aligned to its
// dtype.
#pragma once
#include <string_view>

#include "core/result.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// Fills `files`, `shard_map` and the component locations of all tensors. `model`: what the tensors are of. Each file
/// keeps the metadata of its source; `version` is added where it is not empty.
Status lay_out_files(Plan& plan, const ModelIndex& model, std::string_view version);

}  // namespace wasmquant
