// Runs one tensor's task tile by tile: bytes of the source in, bytes of the output's components out, and the error on
// the way.
//
// Where every scale's elements lie inside one tile, a tile is observed and quantized in one pass. Otherwise all tiles
// are observed first, by any number of sessions whose states are merged, and then quantized.
//
// Every sum is taken over units: fixed parts of the tensor that follow from shape and spec alone. Bytes and sums
// therefore do not depend on the size of tiles or on who ran them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "kernels/kernels.h"
#include "observers/range_observer.h"
#include "pipeline/task.h"

namespace wasmquant {

/// `rows` pieces of `row_bytes` bytes, `stride` bytes apart, the first at `begin` of the file; they land one after
/// another at `pointer`.
struct TileRead {
  uint32_t part = 0;  // component; 0 for a source tensor
  uint32_t file = 0;
  uint64_t begin = 0, row_bytes = 0, stride = 0, rows = 0;
  uint8_t* pointer = nullptr;
};

struct TileWrite {
  uint32_t file = 0;
  uint64_t offset = 0;
  const uint8_t* pointer = nullptr;
  uint64_t bytes = 0;
};

struct TileResult {
  List<TileWrite> writes;
  std::span<const kernels::ErrorSums> sums;  // one per unit; empty for copies
};

/// Lines of one unit, the parts over which sums are taken; tiles are whole units.
uint64_t unit_lines_of(const WeightLayout& layout) noexcept;

class TensorSession {
 public:
  explicit TensorSession(TensorTask task);

  const TensorTask& task() const noexcept { return task_; }
  uint32_t passes() const noexcept { return task_.is_copy || !needs_observer() ? 1 : 2; }

  /// What the tile needs; the memory behind the pointers is the session's and good until the next call.
  List<TileRead> reads(uint64_t tile);
  /// Pass 1 on the tile whose bytes were read last. Errors: value-not-finite.
  Status observe(uint64_t tile);
  /// min[], then max[], of the tiles observed so far.
  std::span<const float> state();
  Status merge_state(std::span<const float> state);
  /// Quantizes the tile whose bytes were read last. Results are good until the next call. Errors: value-not-finite,
  /// state-invalid.
  Result<TileResult> run(uint64_t tile);

 private:
  bool needs_observer() const noexcept;
  uint64_t unit_lines() const noexcept;
  std::span<const float> widened(uint64_t element, uint64_t count);
  Error not_finite(std::span<const float> x, uint64_t first_element) const;
  Status run_rows(const TileRange& tile);
  Status run_columns(const TileRange& tile);
  Status run_values(const TileRange& tile);
  Status run_blocks(const TileRange& tile);
  void make_storable(std::span<QParams> qparams) const noexcept;

  TensorTask task_;
  Bytes input_;
  std::vector<float> block_;   // widened values of one block
  std::vector<float> values_;  // their quantized values
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;
  List<Bytes> slices_;
  List<kernels::ErrorSums> sums_;
  List<float> state_;
  std::unique_ptr<RangeObserver> observer_;
  float second_scale_ = 1.0f;  // of scale_format e4m3
  bool has_qparams_ = false;
};

}  // namespace wasmquant
