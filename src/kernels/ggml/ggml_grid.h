// GGUF blocks whose scales stay while other codes are chosen: which values elements can take, the nearest of them, and
// where codes are stored.
#pragma once
#include <cstddef>
#include <cstdint>

#include "numeric/ggml_type.h"

namespace wasmquant::kernels {

/// The values of one block's elements: scale[i] * level - minimum[i] in run i of `run` elements, as in dequantize_blocks.
struct BlockGrid {
  size_t run = 0;
  float scale[16] = {}, minimum[16] = {};
  float unit = 0, minimum_unit = 0;  // of the scales and minima of 256 elements, which are whole multiples
};
/// That of a stored block. Requires can_quantize(type) and more than one element in a block. Any bytes are valid input.
BlockGrid grid_of(GgmlType type, const uint8_t* block) noexcept;
/// The storable scale or minimum that is nearest to `wanted`, of a type whose scales are float16 or multiples of the unit.
float storable_scale(GgmlType type, float wanted, float unit) noexcept;
float storable_minimum(GgmlType type, float wanted, float unit) noexcept;
/// Whether scales can be chosen freely, and whether minima can.
bool has_free_scales(GgmlType type) noexcept;
bool has_minima(GgmlType type) noexcept;
/// Stores scales and minima of that kind; units and codes stay. Requires has_free_scales.
void put_scales(GgmlType type, const BlockGrid& grid, uint8_t* block) noexcept;
/// Elements of a run.
size_t run_of(GgmlType type) noexcept;

/// x[i] becomes the nearest value that its scale and minimum allow, and codes[i] what put_codes stores for it. Of values as near,
/// integers take the even one of their positions; those of a table take the first code. All are finite.
void nearest_codes(GgmlType type, const float* scale, const float* minimum, size_t count, float* x,
                   uint8_t* codes) noexcept;

/// Stores the codes of one block's elements; its scales stay.
void put_codes(GgmlType type, const uint8_t* codes, uint8_t* block) noexcept;

}  // namespace wasmquant::kernels
