// Runs one tensor's task tile by tile: source bytes in, output components and the error out.
// If every scale's elements are inside one tile, tiles are observed and quantized in one pass; otherwise all tiles are
// observed first (tensor_scales.h). Sums are taken over units, fixed parts of the tensor that follow from shape and
// spec, so neither tile size nor the split between workers changes bytes or sums.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/layout/value_limit.h"
#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "kernels/kernels.h"
#include "pipeline/task/task.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {

/// Values processed at a time: input, codes and scratch stay in the L1 cache.
inline constexpr uint64_t kBlockElements = 8192;

class TensorDecoder;

/// `rows` pieces of `row_bytes` bytes, `stride` bytes apart from `begin` of the file on, stored in a row at `pointer`.
struct TileRead {
  uint32_t part = 0;  // component; 0 for a source tensor
  uint32_t file = 0;
  uint64_t begin = 0, row_bytes = 0, stride = 0, rows = 0;
  uint8_t* pointer = nullptr;
};

/// Output bytes of a tile and their place in a file.
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

/// Lines of one unit, over which sums are taken; tiles are whole units.
uint64_t unit_lines_of(const WeightLayout& layout) noexcept;

/// The fewest lines of `layout` that make whole lines of `source`, the same tensor as codes; all lines if no fewer do.
uint64_t whole_source_lines(const WeightLayout& layout, const WeightLayout& source) noexcept;
/// Lines of `source` with the elements of `lines` lines of `layout`, a multiple of the above or all.
uint64_t source_lines(const WeightLayout& layout, uint64_t lines, const WeightLayout& source) noexcept;

class TensorSession {
 public:
  explicit TensorSession(TensorTask task);
  TensorSession(const TensorSession&) = delete;  // scales refer to the task
  TensorSession& operator=(const TensorSession&) = delete;
  ~TensorSession();

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
  // session_source.cpp: the session of the joined weight with this tile, and the tile's number there.
  TensorSession& joined(uint64_t& tile);
  StorageDtype source_dtype() const noexcept { return task_.is_float32 ? StorageDtype::F32 : task_.layout->source; }
  uint64_t unit_lines() const noexcept { return unit_lines_of(task_.layout); }
  /// Elements of the tile in layout order.
  std::span<const float> widened(uint64_t element, uint64_t count);
  /// session_source.cpp: prepares the tile's bytes for widened(). Errors: file-invalid.
  Status arrange(const TileRange& tile);
  /// session_source.cpp: input [columns, width] to rearranged_ [width, columns].
  void transpose(uint64_t columns, uint64_t width);
  /// session_source.cpp: multiplies the tile's values (of a copy, in their dtype) by the task's factors, if any.
  void multiply(const TileRange& tile);
  // To the rearranged values of a tile.
  void apply_factors(const TileRange& tile);
  /// Errors: value-overflow.
  Status multiply_copy(const TileRange& bytes);
  /// Observes consecutive elements of the tile's input and of the tensor; false if any is not finite.
  bool observe_run(uint64_t in_tile, uint64_t count, uint64_t in_tensor);

  // session_limits.cpp. Elements are numbered as in the layout; messages use the source's indexes.
  bool saturates() const noexcept { return task_.non_finite == NonFinite::saturate; }
  /// The largest scale the config allows: infinity unless it saturates.
  float largest_scale() const noexcept;
  std::string place_of(uint64_t element) const;
  Error not_finite(uint64_t element, float x) const;
  Error overflow(uint64_t element, float x, const std::string& what) const;
  /// value-not-finite or value-overflow, for an element that is not finite or for which ValueLimit::is_lost.
  Error lost(uint64_t element, float x, float y, float scale) const;
  /// In a tile whose first row (of column tiles: first column) contains it.
  Error first_not_finite(const TileRange& tile);
  /// Whether values of codes with these scales must be checked.
  bool may_lose(std::span<const QParams> qparams) const noexcept;
  /// Checks elements and the values read back; `g` assigns `qparams` from flat element `begin` on (empty: no scales).
  /// `sums`: their error; `element`: number of the first. Errors, for the first lost element: value-not-finite,
  /// value-overflow.
  Status check(const kernels::ErrorSums& sums, const Granularity& g, std::span<const QParams> qparams,
               std::span<const float> x, uint64_t begin, const float* y, uint64_t element) const;
  /// The same for codes from encode().
  Status check_codes(const kernels::ErrorSums& sums, const Granularity& g, std::span<const QParams> qparams,
                     std::span<const float> x, uint64_t begin, const uint8_t* codes, uint64_t element);
  /// Decodes codes into values_.
  void read_back(const Granularity& g, std::span<const QParams> qparams, const uint8_t* codes, uint64_t count,
                 uint64_t begin);
  /// The same for a tile of columns; the first column is first.
  Status check_columns(const TileRange& tile);
  /// x, or if the config saturates, a copy with finite values (`infinities`: infinite ones too) clamped to the limit.
  std::span<const float> clamped(std::span<const float> x, bool infinities);
  /// check() for rows in a GGUF type. If a block's scale is infinite, names its largest element.
  Status check_blocks(const kernels::ErrorSums& sums, GgmlType type, std::span<const float> x, const uint8_t* blocks,
                      uint64_t element);

  // session_codes.cpp
  Status run_rows(const TileRange& tile);
  Status run_columns(const TileRange& tile);
  /// Finds scales for `length` elements each; x begins at `first_element`, the first scale is number `first_scale`.
  void find_scales(std::span<const float> x, uint64_t length, uint64_t first_scale, uint64_t first_element,
                   std::span<QParams> qparams);
  void search_scales(std::span<const float> x, uint64_t length, uint64_t first_element, std::span<QParams> qparams);
  /// Encodes x and returns the error.
  kernels::ErrorSums encode(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x,
                            uint64_t begin, uint8_t* codes);

  // session_values.cpp
  Status run_values(const TileRange& tile);
  Status run_blocks(const TileRange& tile);
  /// The values of x's codes, into values_.
  void simulate(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x, uint64_t begin);
  // session_ggml.cpp
  Status run_ggml(const TileRange& tile);
  /// Rows [first, first + count) of the output as float32, from the tile's input.
  std::span<const float> changed_rows(const TileRange& tile, uint64_t first, uint64_t count);
  /// Quantizes rows [first, first + count) of the output, each with its importance, and adds their error.
  void quantize_rows(GgmlType type, const float* x, uint64_t first, uint64_t count, uint8_t* out,
                     kernels::ErrorSums& error) const;
  void add_padding(uint64_t tile, uint64_t end, List<TileWrite>& writes);

  /// Stores values_; the error includes the rounding to the dtype.
  void store(StorageDtype dtype, uint64_t count, uint8_t* out);

  TensorTask task_;
  ValueLimit limit_;
  std::unique_ptr<TensorDecoder> decoder_;  // for a quantized source
  Bytes source_bytes_;
  std::vector<float> rearranged_;  // the tile, for source_transposed or a quantized source
  bool is_arranged_ = false, is_rearranged_ = false;
  std::vector<float> block_;           // widened values of one block
  std::vector<float> values_;          // their quantized values
  std::vector<float> scratch_values_;  // codes of the first of two stages
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;  // of one unit or tile, if tiles find their own scales
  List<Bytes> slices_;
  List<kernels::ErrorSums> sums_;
  bool is_weighed_ = false;
  std::unique_ptr<TensorSession> joined_;  // of one joined weight at a time
  bool scales_may_lose_ = false;           // those of scales_
  std::unique_ptr<TensorScales> scales_;   // if all tiles are observed first
  std::optional<TwoStages> stages_;        // if progressive
};

}  // namespace wasmquant
