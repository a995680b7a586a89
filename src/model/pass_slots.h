// Tensors of a forward pass outside the blocks.
#pragma once
#include <cstdint>

namespace wasmquant {

/// Which tensor is meant: a model::Slot of the step's block, or one of these.
inline constexpr uint32_t kEmbeddingSlot = 100, kFinalNormSlot = 101, kHeadSlot = 102;
inline constexpr uint32_t kFinalNormBiasSlot = 107, kHeadBiasSlot = 108;
/// What is added to the embeddings of tokens, and the norm of the sums.
inline constexpr uint32_t kPositionsSlot = 103, kTypesSlot = 104, kEmbeddingNormSlot = 105,
                          kEmbeddingNormBiasSlot = 106;

/// Of an expert: gate, up and down, from here on in order of the experts.
inline constexpr uint32_t kExpertSlots = 1000;

}  // namespace wasmquant
