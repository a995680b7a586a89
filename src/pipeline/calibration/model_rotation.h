// Rotations of a whole model that keep its function (QuaRot; AMD Quark, spec 7.8) and are baked into the weights:
//   R1  the residual stream x becomes x R: embedding rows and outputs of o and down are rotated; inputs of q, k, v,
//       gate, up and the head rotated back. Norms commute with R once folded into the layers that read them.
//   R2  within each head, values become v R: outputs of v are rotated, inputs of o rotated back.
//   R4  the input of down, h, becomes h R at run time (model/block.h); its weight is rotated back here.
// R3 rotates queries and keys after RoPE at run time; it is not implemented.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "kernels/hadamard.h"
#include "model/block_weights.h"
#include "model/config/architecture.h"
#include "pipeline/session/store_modified_weight.h"

namespace wasmquant {

/// Field names and defaults are Quark's; `seed` selects the random signs.
struct RotationOptions {
  bool r1 = true, r2 = false, r4 = false;
  bool random_r1 = false, random_r2 = false;
  uint64_t rotation_size = 0;  // block size of R1; 0: one block
  uint64_t seed = 0;
};

/// Sums are float64, rounded once per rotation.
class ModelRotation {
 public:
  /// Errors, below the JSON pointer `where`: not-implemented (norms after attention and feed-forward, a size without a
  /// Hadamard matrix), config-invalid (rotation_size).
  static Result<ModelRotation> create(const model::Architecture& architecture, const RotationOptions& options,
                                      const std::string& where);

  /// Whether the residual stream, and so embedding, final norm and head, is rotated.
  bool rotates_stream() const noexcept { return stream_.size() != 0; }
  /// Whether the weight of down is rotated, so the runtime must rotate its input.
  bool rotates_down_input() const noexcept { return down_.size() != 0; }
  uint32_t hidden() const noexcept { return hidden_; }
  void rotate_block(model::BlockValues& block);
  void rotate_embedding(std::span<float> rows) { rotate_rows(rows, {}, stream_); }
  /// Rows of the head; `norm` is the original weight of the final norm.
  void rotate_head(std::span<float> rows, std::span<const float> norm) { rotate_rows(rows, norm, stream_); }
  /// Sets a folded norm's weight to the identity.
  void clear_norm(std::span<float> norm) const noexcept;

 private:
  /// Rows w of a weight: w <- (w norm) R; R covers a row or each part of it. `norm` may be empty.
  void rotate_rows(std::span<float> weight, std::span<const float> norm, Hadamard& by);
  /// Columns w of each part of by.size() rows: w <- w R.
  void rotate_columns(std::span<float> weight, size_t columns, Hadamard& by);

  model::Architecture architecture_;
  Hadamard stream_, head_, down_;  // R1, R2, R4; size 0 if unused
  bool norm_plus_one_ = false;
  uint32_t hidden_ = 0;
  std::vector<double> row_;
};

/// Rotates embedding, final norm, and head, into which that norm is folded, one after another, tile by tile. Tiles belong to the
/// caller, and are stored as they pass.
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
