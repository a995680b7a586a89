// Tensors of a forward pass outside the blocks.
#pragma once
#include <cstdint>

#include "model/block_weights.h"

namespace wasmquant {

/// Which tensor is meant: a model::Slot of the step's block, or one of these.
inline constexpr uint32_t kEmbeddingSlot = 100, kFinalNormSlot = 101, kHeadSlot = 102;
inline constexpr uint32_t kFinalNormBiasSlot = 107, kHeadBiasSlot = 108;
/// What is added to the embeddings of tokens, and the norm of the sums.
inline constexpr uint32_t kPositionsSlot = 103, kTypesSlot = 104, kEmbeddingNormSlot = 105,
                          kEmbeddingNormBiasSlot = 106;
/// Of layers' own inputs: a row of all for each token, what is added to it, and the norm of that.
inline constexpr uint32_t kLayerTableSlot = 109, kLayerProjectionSlot = 110, kLayerTableNormSlot = 111;
/// Of each stream but the first: from the embedding, and to the last norm.
inline constexpr uint32_t kStreamInSlot = 120, kStreamOutSlot = 130;

/// The norm behind the encoder of an encoder-decoder.
inline constexpr uint32_t kEncoderNormSlot = 112;

/// Of an expert: gate, up and down, from here on in order of the experts.
inline constexpr uint32_t kExpertSlots = 1000;
/// The slot of a tensor in its block, or in the block that is its expert.
constexpr model::Slot block_slot(uint32_t slot) noexcept {
  const auto gate = static_cast<uint32_t>(model::Slot::gate);
  return static_cast<model::Slot>(slot < kExpertSlots ? slot : gate + (slot - kExpertSlots) % 3);
}

}  // namespace wasmquant
