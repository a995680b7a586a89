// Tensors of a forward pass outside the blocks.
#pragma once
#include <cstdint>

namespace wasmquant {

/// Which tensor is meant: a model::Slot of the step's block, or one of these.
inline constexpr uint32_t kEmbeddingSlot = 100, kFinalNormSlot = 101, kHeadSlot = 102;

}  // namespace wasmquant
