// Tensors of a forward pass outside the blocks.
#pragma once
#include <cstdint>

namespace wasmquant {

/// Which tensor is meant: a model::Slot of the step's block, or one of these.
inline constexpr uint32_t kEmbeddingSlot = 100, kFinalNormSlot = 101, kHeadSlot = 102;
/// Of encoders: what is added to the embeddings of tokens, and the norm of the sums. They are read with the first block.
inline constexpr uint32_t kPositionsSlot = 103, kTypesSlot = 104, kEmbeddingNormSlot = 105,
                          kEmbeddingNormBiasSlot = 106;

}  // namespace wasmquant
