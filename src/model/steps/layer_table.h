// The inputs that layers have of their own: rows of a table by token, and a product of the embeddings x,
//   (row * root(width) + norm(W x / root(hidden))) / root(2), the norm by layer (Gemma 3n).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// Columns of a row: those of all layers.
inline size_t layer_columns(const Architecture& a) noexcept { return size_t{a.layers} * a.layer_inputs.width; }

/// Whether the row of one of the tokens is in [first, end).
bool has_layer_row(const Architecture& architecture, std::span<const int32_t> tokens, size_t first,
                   size_t end) noexcept;

/// From rows [first, first + rows.size() / columns) of the table, those of the tokens that are there, scaled, to `inputs` [tokens, columns].
void take_layer_rows(const Architecture& architecture, std::span<const int32_t> tokens, std::span<const float> rows,
                     uint32_t first, std::vector<float>& inputs);

/// Adds what the embeddings `x` [tokens, hidden] give. `projection` [columns, hidden], `norm` [width].
void finish_layer_inputs(const Architecture& architecture, std::span<const float> projection,
                         std::span<const float> norm, std::span<const float> x, std::vector<float>& inputs);

}  // namespace wasmquant::model
