// The linear layers of a transformer block: names, inputs, and weights.
#pragma once
#include <span>

#include "model/block_weights.h"
#include "model/linear_input.h"

namespace wasmquant::model {

/// One linear layer of a block.
struct LinearLayer {
  Slot weight, bias;
  LinearInput reads;
};

inline constexpr size_t kLinearLayers = kBlockMatrices;

/// In the order of computation, which is the order of their weights in Slot.
std::span<const LinearLayer> linear_layers() noexcept;

/// The name of the one of a weight below its layer, as the checkpoint spells it; "" if the architecture lacks it.
const std::string& layer_name(const Architecture& architecture, Slot weight) noexcept;

/// Columns of an input of a block, or of an expert as one.
size_t input_columns(const Architecture& block, LinearInput input) noexcept;

/// The layers of the architecture that read an input of a block; none for the head's.
std::span<const LinearLayer> consumers_of(const Architecture& architecture, LinearInput input) noexcept;

}  // namespace wasmquant::model
