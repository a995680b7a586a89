// The tensors of one transformer block, as Hugging Face names them, and their values while the block runs.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/list.h"
#include "model/architecture.h"
#include "model/linear_input.h"

namespace wasmquant::model {

/// The weights of a block.
enum class Slot : uint8_t {
  q,
  k,
  v,
  o,
  gate,
  up,
  down,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  gate_bias,
  up_bias,
  down_bias,
  input_norm,
  q_norm,
  k_norm,
  attention_post_norm,
  feed_forward_norm,
  feed_forward_post_norm,
  attention_post_norm_bias,
  feed_forward_post_norm_bias,
};
inline constexpr size_t kSlots = 22;
inline constexpr size_t kBlockMatrices = 7;  // q to down

/// Name and shape of one weight.
struct BlockWeight {
  Slot slot;
  std::string name;                // below "layers.N.", of encoders below "encoder.layer.N."
  uint32_t rows = 0, columns = 0;  // [out, in]; vectors are [columns], with rows 0
};

/// The weights of a block of this architecture, in the order of its computation.
List<BlockWeight> block_weights(const Architecture& architecture);

/// Values in C order; weights that the architecture lacks stay empty. `inputs`: the precision of the inputs of the
/// layer that a weight belongs to. `packed`: of linear layers, for one row at a time (kernels::pack_columns); `values` then lack them.
struct BlockValues {
  std::array<std::vector<float>, kBlockMatrices> packed;
  std::array<std::vector<float>, kSlots> values;
  std::array<InputPrecision, kSlots> inputs{};
  std::vector<float>& operator[](Slot slot) noexcept { return values[static_cast<size_t>(slot)]; }
  const std::vector<float>& operator[](Slot slot) const noexcept { return values[static_cast<size_t>(slot)]; }
};

}  // namespace wasmquant::model
