// Runs one tensor's task tile by tile: bytes of the source in, bytes of the output's components out, and the error on
// the way.
//
// Where every scale's elements lie inside one tile, a tile is observed and quantized in one pass. Otherwise all tiles
// are observed first (tensor_scales.h), and then quantized.
//
// Every sum is taken over units: fixed parts of the tensor that follow from shape and spec alone. Bytes and sums
// therefore do not depend on the size of tiles or on who ran them.
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

/// Values worked on at a time: input, codes and scratch of a block stay in the first-level cache.
inline constexpr uint64_t kBlockElements = 8192;

class TensorDecoder;

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

/// Lines of `layout` whose elements are whole multiples of lines of `source`, the same tensor in codes: their smallest
/// number, all where no smaller one is.
uint64_t whole_source_lines(const WeightLayout& layout, const WeightLayout& source) noexcept;
/// Lines of `source` that have the elements of so many lines of `layout`, a multiple of the above or all.
uint64_t source_lines(const WeightLayout& layout, uint64_t lines, const WeightLayout& source) noexcept;

class TensorSession {
 public:
  explicit TensorSession(TensorTask task);
  TensorSession(const TensorSession&) = delete;  // scales refer to the task
  TensorSession& operator=(const TensorSession&) = delete;
  ~TensorSession();

  const TensorTask& task() const noexcept { return task_; }
  /// Passes over all tiles before run(): 0, 1 or 2.
  uint32_t observe_passes() const { return task_.is_copy ? 0 : TensorScales::passes(task_.layout); }

  /// What the tile needs; the memory behind the pointers is the session's and good until the next call.
  List<TileRead> reads(uint64_t tile);
  /// One observe pass on the tile whose bytes were read last. Errors: value-not-finite.
  Status observe(uint64_t tile);
  /// Between two observe passes.
  Status next_pass();
  /// Of the tiles observed so far, or of the whole tensor when all passes are done; for take_state of another session.
  Result<std::span<const float>> state();
  Status take_state(std::span<const float> state);
  /// Instead of observing: TensorScales::give. Not for casts, copies and block dtypes.
  Status give_scales(std::span<const QParams> qparams, float second_scale);
  /// Quantizes the tile whose bytes were read last. Results are good until the next call. Errors: value-not-finite,
  /// value-overflow, state-invalid, format-unsupported (TensorScales::finish).
  Result<TileResult> run(uint64_t tile);

 private:
  StorageDtype source_dtype() const noexcept { return task_.is_float32 ? StorageDtype::F32 : task_.layout.source; }
  uint64_t unit_lines() const noexcept { return unit_lines_of(task_.layout); }
  /// Elements of the tile, as the layout orders them.
  std::span<const float> widened(uint64_t element, uint64_t count);
  /// session_source.cpp: the tile's bytes, once they are read, as widened() takes them. Errors: file-invalid.
  Status arrange(const TileRange& tile);
  /// The same file: input [columns, width] to rearranged_ [width, columns].
  void transpose(uint64_t columns, uint64_t width);
  /// The same file, where the task has factors: the values of a tile times them; bytes of a copy, in their dtype.
  void multiply(const TileRange& tile);
  /// Errors: value-overflow.
  Status multiply_copy(const TileRange& bytes);
  /// Consecutive elements of the tile's input, and of the tensor; whether all are finite.
  bool observe_run(uint64_t in_tile, uint64_t count, uint64_t in_tensor);

  // session_limits.cpp. Elements are numbered as in the layout; messages name them as the source has them.
  bool saturates() const noexcept { return task_.non_finite == NonFinite::saturate; }
  /// Of those that the config allows: infinity unless it saturates.
  float largest_scale() const noexcept;
  std::string place_of(uint64_t element) const;
  Error not_finite(uint64_t element, float x) const;
  Error overflow(uint64_t element, float x, const std::string& what) const;
  /// One of both, of an element for which ValueLimit::is_lost, or that is not finite.
  Error lost(uint64_t element, float x, float y, float scale) const;
  /// Of the tile; the first row has it, or of column tiles the first column.
  Error first_not_finite(const TileRange& tile);
  /// Whether values of codes with these scales have to be looked at.
  bool may_lose(std::span<const QParams> qparams) const noexcept;
  /// Of elements, their values as they are read back, and their scales, which `g` deals out from flat element `begin`
  /// on (none: `qparams` empty): the error of the first one that is lost. `sums` is their error, `element` the number
  /// of the first. Errors: value-not-finite, value-overflow.
  Status check(const kernels::ErrorSums& sums, const Granularity& g, std::span<const QParams> qparams,
               std::span<const float> x, uint64_t begin, const float* y, uint64_t element) const;
  /// The same for codes, as encode() made them.
  Status check_codes(const kernels::ErrorSums& sums, const Granularity& g, std::span<const QParams> qparams,
                     std::span<const float> x, uint64_t begin, const uint8_t* codes, uint64_t element);
  /// Values of codes, into values_.
  void read_back(const Granularity& g, std::span<const QParams> qparams, const uint8_t* codes, uint64_t count,
                 uint64_t begin);
  /// The same for a tile of columns, the first column first.
  Status check_columns(const TileRange& tile);
  /// x, or where the config saturates a copy in numbers_ whose finite values (`infinities`: and infinities) are within
  /// the limit.
  std::span<const float> clamped(std::span<const float> x, bool infinities);
  /// check() for rows in a GGUF type. Where a block's scale is infinite, its largest element is named.
  Status check_blocks(const kernels::ErrorSums& sums, GgmlType type, std::span<const float> x, const uint8_t* blocks,
                      uint64_t element);

  // session_codes.cpp
  Status run_rows(const TileRange& tile);
  Status run_columns(const TileRange& tile);
  /// Scales of consecutive elements, `length` each: x is made of them and begins at `first_element`; `first_scale` is
  /// the tensor's.
  void find_scales(std::span<const float> x, uint64_t length, uint64_t first_scale, uint64_t first_element,
                   std::span<QParams> qparams);
  void search_scales(std::span<const float> x, uint64_t length, uint64_t first_element, std::span<QParams> qparams);
  /// Codes of x, and their error.
  kernels::ErrorSums encode(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x,
                            uint64_t begin, uint8_t* codes);

  // session_values.cpp
  Status run_values(const TileRange& tile);
  Status run_blocks(const TileRange& tile);
  /// The values of x's codes, into values_.
  void simulate(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x, uint64_t begin);
  // session_ggml.cpp
  Status run_ggml(const TileRange& tile);
  /// Rows [first, first + count) of the output as the tile's input has them, float32.
  std::span<const float> changed_rows(const TileRange& tile, uint64_t first, uint64_t count);
  /// Rows [first, first + count) of the output, each by the importance that is its. Adds their error.
  void quantize_rows(GgmlType type, const float* x, uint64_t first, uint64_t count, uint8_t* out,
                     kernels::ErrorSums& error) const;
  void add_padding(uint64_t tile, uint64_t end, List<TileWrite>& writes);

  /// values_ as they are stored; what rounding does to them is part of the error.
  void store(StorageDtype dtype, uint64_t count, uint8_t* out);

  TensorTask task_;
  ValueLimit limit_;
  std::unique_ptr<TensorDecoder> decoder_;  // of a quantized source
  Bytes input_;
  std::vector<float> rearranged_;  // the tile of a layout with source_transposed, or of a quantized source
  bool is_arranged_ = false, is_rearranged_ = false;
  std::vector<float> block_;    // widened values of one block
  std::vector<float> values_;   // their quantized values
  std::vector<float> numbers_;  // their first stage's codes, of two stages
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;  // of one unit or tile, where scales lie in tiles
  List<Bytes> slices_;
  List<kernels::ErrorSums> sums_;
  bool is_weighed_ = false;
  bool scales_may_lose_ = false;          // those of scales_
  std::unique_ptr<TensorScales> scales_;  // where all tiles are observed first
  std::optional<TwoStages> stages_;       // progressive ones
};

/// `count` scales of `length` consecutive elements each.
Granularity consecutive_scales(uint64_t count, uint64_t length);

}  // namespace wasmquant
