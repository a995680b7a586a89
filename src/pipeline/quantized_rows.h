// A part of a tensor in codes as a weight in codes of its own: the matrix of one expert of several.
#pragma once
#include <cstdint>
#include <memory>

#include "pipeline/task.h"

namespace wasmquant {

/// Rows [first, first + count) of the rows that `source` stores one after another, `columns` long, as the matrix [count,
/// columns], without the transposition that readers of the whole see. Null where rows of its format do not stand alone.
std::shared_ptr<const QuantizedSource> quantized_rows(const QuantizedSource& source, uint64_t first, uint64_t count,
                                                      uint64_t columns);

}  // namespace wasmquant
