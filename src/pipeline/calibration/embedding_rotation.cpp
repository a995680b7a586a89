#include "pipeline/calibration/embedding_rotation.h"

#include <utility>

#include "core/message.h"
#include "model/pass_slots.h"

namespace wasmquant {

Status EmbeddingRotation::begin(uint32_t slot, TensorTask task) {
  if (slot != kEmbeddingSlot && slot != kFinalNormSlot && slot != kHeadSlot)
    return error_at(ErrorCode::argument_invalid, task.name, "is neither embedding, final norm nor head");
  if (task.layout->components.empty() || (slot == kHeadSlot && norm_.empty()))
    return error_at(ErrorCode::argument_invalid, task.name, "is not stored in a dtype that calibration knows");
  slot_ = slot;
  tile_rows_ = 0;
  task_.emplace(std::move(task));
  return {};
}

Result<StoredValues> EmbeddingRotation::store(std::span<const float> rows, uint32_t first_row) {
  if (!task_ || rows.empty()) return error_at(ErrorCode::state_invalid, "calibration", "no rows were loaded");
  std::vector<float> rotated(rows.begin(), rows.end());
  if (slot_ == kFinalNormSlot) {
    norm_ = rotated;
    rotation_.clear_norm(rotated);
  } else if (slot_ == kEmbeddingSlot) {
    rotation_.rotate_embedding(rotated);
  } else {
    rotation_.rotate_head(rotated, norm_);
  }
  // All tiles except the last have as many rows as the first.
  if (tile_rows_ == 0) tile_rows_ = slot_ == kFinalNormSlot ? 1 : rows.size() / rotation_.hidden();
  return store_modified_rows(*task_, tile_rows_, first_row, rotated);
}

}  // namespace wasmquant
