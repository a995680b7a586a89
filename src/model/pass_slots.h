// Tensors of a forward pass that belong to no block.
#pragma once
#include <cstdint>

namespace wasmquant {

/// Where a tensor goes: a model::Slot of the step's block, or one of these.
inline constexpr uint32_t kEmbeddingSlot = 100, kFinalNormSlot = 101, kHeadSlot = 102;

}  // namespace wasmquant
