// Places the tensors of one output file: headers, offsets, and the bytes that are known without reading weights.
//
// Data order: 1. tensors whose values follow from shapes (I64 shapes)  2. each source tensor's components together,
// codes first, in the source's order. An append-only sink can then be fed while holding back no more than one tensor's
// scales. Tensors whose bytes are multiples of 8 come first, then of 4, 2, 1, so that everything stays aligned to its
// dtype.
#pragma once
#include <span>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// Fills `file` and the component locations of `tensors` (all tensors of that file, source order).
Status lay_out_file(PlannedFile& file, uint32_t file_index, std::span<PlannedTensor* const> tensors,
                    const List<std::pair<std::string, std::string>>& metadata);

}  // namespace wasmquant
