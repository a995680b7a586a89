// Rows of a tensor that GGUF has in another order, or in several tensors.
//   "/GROUPS/PARTS/FIRST", a word of architectures.def: the FIRST rows, which stay at the front of the first target (none if
//   left out), then GROUPS groups of rows. Each group has the same PARTS. A target has its parts one after the other, each
//   of all groups.
//     PARTS   of a target between commas, of targets between bars: a number of rows · "*": all rows that are left ·
//             behind it "*NUMBER": as many parts of that size · "^": the rows of each group are a matrix · "'": one to be transposed
//     Every number is a product of digits and letters, those of size_named().
//   "/h/d,d,d": h heads with d rows each of a query, a key and a value, to all queries, all keys, all values.
#pragma once
#include <string_view>

#include "gguf_conversion/tensors/converted_tensor.h"
#include "gguf_conversion/tensors/layout_sizes.h"

namespace wasmquant::conversion {

/// The rows of each target, as many in each entry of one. `rows`: those of the tensor. Errors: argument-invalid naming the key
/// of config.json that is missing; shape-mismatch if the groups are not the rows of the tensor.
Result<List<List<SourceRows>>> divide_rows(std::string_view groups, const LayoutSizes& sizes, uint32_t source,
                                           const SourceTensor& tensor, uint64_t rows);

/// How many rows each part of the only group has. Errors: as above.
Result<std::vector<uint64_t>> rows_of_parts(std::string_view groups, const LayoutSizes& sizes,
                                            const SourceTensor& tensor, uint64_t rows);

}  // namespace wasmquant::conversion
