// Runs one tensor's task tile by tile: source bytes in, output components and the error out.
// If every scale's elements are inside one tile, tiles are observed and quantized in one pass; otherwise all tiles are
// observed first (tensor_scales.h). Sums are taken over units, fixed parts of the tensor that follow from shape and
// spec, so neither tile size nor the split between workers changes bytes or sums.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/session/tile_encoder.h"
#include "pipeline/session/tile_source.h"
#include "pipeline/session/value_check.h"
#include "pipeline/task/task.h"
#include "pipeline/task/tensor_scales.h"
#include "pipeline/task/tiles.h"

namespace wasmquant {

class TensorSession {
 public:
  explicit TensorSession(TensorTask task);
  TensorSession(const TensorSession&) = delete;  // its parts refer to the task
  TensorSession& operator=(const TensorSession&) = delete;

  const TensorTask& task() const noexcept { return task_; }
  /// Passes over all tiles before run(): 0, 1 or 2.
  uint32_t observe_passes() const { return task_.is_copy ? 0 : TensorScales::passes(task_.layout, task_.is_observed); }

  /// The reads of a tile; their memory belongs to the session and is valid until the next call. Tiles from task().tiles
  /// on are those of the joined weights, one after another; they are observed in the first pass, and not run.
  List<TileRead> reads(uint64_t tile);
  /// Observes the tile read last. Errors: value-not-finite, naming the weight.
  Status observe(uint64_t tile);
  /// What observing joined weights finds: their range.
  void join(const ValueRange& others) { scales_->join(others); }
  /// Call between two observe passes.
  Status next_pass();
  /// State of the tiles observed so far, or of the whole tensor after all passes; for take_state of another session.
  Result<std::span<const float>> state();
  Status take_state(std::span<const float> state);
  /// Replaces observing: TensorScales::give. Not for casts, copies and block dtypes.
  Status give_scales(std::span<const QParams> qparams, float second_scale);
  /// Quantizes the tile read last; results are valid until the next call. Errors: value-not-finite, value-overflow,
  /// state-invalid, format-unsupported (TensorScales::finish).
  Result<TileResult> run(uint64_t tile);

 private:
  // The session of the joined weight with this tile, and the tile's number there.
  TensorSession& joined(uint64_t& tile);
  // Error: state-invalid where tiles find their own scales.
  Status needs_scales() const;
  // Observes consecutive elements of the tile's input and of the tensor; false if any is not finite.
  bool observe_run(uint64_t in_tile, uint64_t count, uint64_t in_tensor);
  Result<TileResult> copy(uint64_t tile);
  // Multiplies a copied tile by the task's factors, in its dtype. Errors: value-overflow.
  Status multiply_copy(const TileRange& bytes);
  void add_padding(uint64_t tile, uint64_t end, List<TileWrite>& writes);

  const TensorTask task_;
  TileSource source_;
  ValueCheck check_;
  std::unique_ptr<TensorScales> scales_;   // if all tiles are observed first
  bool is_weighed_ = false;                // they know the importance
  std::unique_ptr<TensorSession> joined_;  // of one joined weight at a time
  std::unique_ptr<TileEncoder> encoder_;   // null for a copy
  TileOutput out_;
  Bytes padding_;
};

}  // namespace wasmquant
