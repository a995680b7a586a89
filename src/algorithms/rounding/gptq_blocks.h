// GPTQ (gptq.h) for the block types of GGUF files: codes are chosen column by column, and later columns compensate for the error of
// each. The scales of a block are chosen when its first column is reached, from its columns as they are then.
#pragma once
#include <cstdint>
#include <span>

#include "algorithms/rounding/error_feedback.h"
#include "numeric/ggml_type.h"

namespace wasmquant {

/// The order of columns that the type needs: its blocks stay together, and so do the runs of elements with one scale, or the eights that
/// a codebook stores together; these are chosen when the first of them is reached.
ColumnOrder block_order(GgmlType type, bool desc_act) noexcept;

/// weight [rows, columns] becomes the values of `blocks`, bytes_of(columns) for each row. Rows are independent: tiles of
/// whole rows give the same result as the whole. `feedback` is of block_order(). Requires can_quantize(type) and a block
/// of more than one element.
/// Errors: shape-mismatch, group-size-invalid (columns are not whole blocks), value-not-finite (names the element).
Status gptq_blocks(const ErrorFeedback& feedback, GgmlType type, std::span<float> weight, std::span<uint8_t> blocks);

}  // namespace wasmquant
