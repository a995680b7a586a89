// Rotates embedding, final norm, and head, into which that norm is folded. Tiles are stored as they pass.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "pipeline/calibration/model_rotation.h"
#include "pipeline/task/store_modified_weight.h"

namespace wasmquant {

/// Rotates one tensor after another, tile by tile; tiles belong to the caller.
class EmbeddingRotation {
 public:
  /// `rotation` must outlive this object.
  explicit EmbeddingRotation(ModelRotation& rotation) noexcept : rotation_(rotation) {}

  /// Starts the next tensor. `slot`: kEmbeddingSlot, kFinalNormSlot or kHeadSlot, the norm before the head; `task`: the
  /// plan's. Error: argument-invalid for another slot.
  Status begin(uint32_t slot, TensorTask task);
  /// Rotates and stores the next tile. `first_row`: of the tile; 0 for the norm. The pass must continue with the
  /// returned values. Errors: those of store_modified_rows.
  Result<StoredValues> store(std::span<const float> rows, uint32_t first_row);

 private:
  ModelRotation& rotation_;
  std::optional<TensorTask> task_;
  uint32_t slot_ = 0;
  uint64_t tile_rows_ = 0;
  std::vector<float> norm_;  // the original final norm
};

}  // namespace wasmquant
