// Lays out safetensors files: headers, offsets, and bytes known without reading weights, in the source's files. Data
// order: 1. tensors whose values follow from shapes (I64 shapes)  2. each source tensor's components together, codes
// first, in source order, so an append-only sink holds back at most one tensor's scales. Sizes that are multiples of 8
// come first, then of 4, 2, 1, which aligns everything to its dtype.
#pragma once
#include <string>
#include <string_view>

#include "core/result.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// Fills `files`, `shard_map` and the component locations of all tensors. `model`: the planned model. Each file keeps
/// its source's metadata; `version` is added if not empty.
Status lay_out_files(Plan& plan, const ModelIndex& model, std::string_view version);

/// A piece of the header of a file of the plan: known bytes at marks[piece].text. `piece` < piece_count().
std::string header_text(const Plan& plan, const PlannedHeader& header, size_t piece);

}  // namespace wasmquant
