// The tensors outside of blocks that a rotation of the residual stream changes: rows of the embedding, the final norm,
// and rows of the head, which take up that norm. They are stored as they pass, tile by tile.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "pipeline/calibration/model_rotation.h"
#include "pipeline/task/store_modified_weight.h"

namespace wasmquant {

class EmbeddingRotation {
 public:
  /// `rotation` outlives it.
  explicit EmbeddingRotation(ModelRotation& rotation) noexcept : rotation_(rotation) {}

  /// The next tensor. `slot` is kEmbeddingSlot, kFinalNormSlot or kHeadSlot, the norm before the head; `task` is that
  /// of the plan. Error: argument-invalid for another slot.
  Status begin(uint32_t slot, TensorTask task);
  /// The next tile of it, as the model has it, stored. `first_row`: of the tile; 0 for the norm. The values of what is
  /// returned are what the pass goes on with. Errors: those of store_changed_rows.
  Result<StoredChange> store(std::span<const float> rows, uint32_t first_row);

 private:
  ModelRotation& rotation_;
  std::optional<TensorTask> task_;
  uint32_t slot_ = 0;
  uint64_t tile_rows_ = 0;
  std::vector<float> norm_;  // the final one, as it was
};

}  // namespace wasmquant
