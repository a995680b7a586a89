// Reading, observing and the order of passes; codes and values are made in session_codes.cpp and session_values.cpp.
#include "pipeline/task/session.h"

#include <algorithm>
#include <numeric>

#include "core/list.h"
#include "pipeline/task/decoder.h"
#include "pipeline/task/to_float32.h"

namespace wasmquant {
namespace {

// Approximate elements per unit: large enough to make sums cheap, small enough for the L2 cache.
constexpr uint64_t kUnitElements = 65536;
// Approximate columns per unit of a column tile.
constexpr uint64_t kUnitColumns = 128;

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

TensorSession::TensorSession(TensorTask task) : task_(std::move(task)), limit_(value_limit_of(task_.layout)) {
  const WeightLayout& layout = task_.layout;
  slices_.resize(layout.components.size());
  if (task_.is_copy) return;
  if (task_.quantized && !task_.is_float32) {
    TensorTask source = task_.quantized->task;
    const bool is_across = source.layout->column_tiles() != layout.column_tiles();
    source.tile_lines = is_across ? source.layout->lines() : source_lines(layout, task_.tile_lines, source.layout);
    decoder_ = std::make_unique<TensorDecoder>(std::move(source));
  }
  if (task_.is_observed || TensorScales::needed(layout))
    scales_ = std::make_unique<TensorScales>(layout, largest_scale());
  stages_ = progressive_stages(layout);
}

TensorSession::~TensorSession() = default;

uint64_t source_lines(const WeightLayout& layout, uint64_t lines, const WeightLayout& source) noexcept {
  const uint64_t elements = layout.line_elements(), source_elements = source.line_elements();
  if (lines >= layout.lines() || elements == 0 || source_elements == 0) return std::max<uint64_t>(source.lines(), 1);
  return std::max<uint64_t>(lines * elements / source_elements, 1);
}

uint64_t whole_source_lines(const WeightLayout& layout, const WeightLayout& source) noexcept {
  const uint64_t elements = layout.line_elements(), all = std::max<uint64_t>(layout.lines(), 1);
  uint64_t whole;
  if (elements == 0 || __builtin_mul_overflow(source.line_elements(), source.line_multiple(), &whole)) return all;
  return std::clamp<uint64_t>(whole / std::gcd(whole, elements), 1, all);
}

uint64_t unit_lines_of(const WeightLayout& layout) noexcept {
  const uint64_t multiple = layout.line_multiple();
  if (layout.column_tiles()) return round_up(kUnitColumns, multiple);
  const uint64_t line = std::max<uint64_t>(layout.line_elements(), 1);
  return round_up(std::max<uint64_t>(kUnitElements / line, 1), multiple);
}

List<TileRead> TensorSession::reads(uint64_t tile) {
  is_arranged_ = false;
  if (tile >= task_.tiles && !task_.joined.empty()) return joined(tile).reads(tile);
  joined_.reset();
  if (decoder_) return decoder_->reads(tile);
  const TileRange range = tile_range(task_, tile);
  TileRead read;
  read.file = task_.source.file;
  read.rows = 1;
  if (task_.is_copy) {
    read.begin = task_.source.offset + range.begin;
    read.row_bytes = range.count();
  } else {
    const WeightLayout& layout = task_.layout;
    const StorageDtypeInfo& source = info_of(source_dtype());
    if (task_.is_varints) {
      read.begin = task_.source.offset;
      read.row_bytes = task_.source_bytes;
    } else {
      const bool is_transposed = task_.is_transposed();
      const uint64_t stored_rows = is_transposed ? layout.columns : layout.rows;
      const uint64_t stored_columns = is_transposed ? layout.rows : layout.columns;
      const uint64_t pitch = task_.source_pitch != 0 ? task_.source_pitch : stored_columns;
      read.stride = source.bytes_of(pitch);
      if (layout.column_tiles() != is_transposed) {  // the tile's lines are columns of the source
        read.begin = task_.source.offset + source.bytes_of(range.begin);
        read.row_bytes = source.bytes_of(range.count());
        read.rows = stored_rows;
      } else {
        read.begin = task_.source.offset + source.bytes_of(range.begin * pitch);
        read.row_bytes = source.bytes_of(stored_columns);
        read.rows = range.count();
        if (pitch == stored_columns) {
          read.row_bytes *= read.rows;
          read.rows = 1;
        }
      }
    }
  }
  source_bytes_.resize(read.row_bytes * read.rows);
  read.pointer = source_bytes_.data();
  return {read};
}

std::span<const float> TensorSession::widened(uint64_t element, uint64_t count) {
  if (is_rearranged_) return std::span<const float>(rearranged_).subspan(element, count);
  const StorageDtype dtype = source_dtype();
  if (dtype == StorageDtype::F32)
    return std::span(reinterpret_cast<const float*>(source_bytes_.data()) + element, count);
  if (block_.size() < count) block_.resize(count);
  to_float32(dtype, source_bytes_.data() + info_of(dtype).bytes_of(element), count, block_.data());
  return std::span<const float>(block_.data(), count);
}

Status TensorSession::observe(uint64_t tile) {
  if (!scales_) return error_at(ErrorCode::state_invalid, task_.name, "this tensor is quantized in one pass");
  if (tile >= task_.tiles && !task_.joined.empty()) {
    TensorSession& other = joined(tile);
    TRY_VOID(other.observe(tile));
    join(other.scales_->observed());
    return {};
  }
  if (!task_.importance.empty() && !std::exchange(is_weighed_, true)) TRY_VOID(scales_->weigh(task_.importance));
  TRY_VOID(scales_->begin());
  const TileRange range = tile_range(task_, tile);
  TRY_VOID(arrange(range));
  const uint64_t columns = task_.layout->columns;
  bool all_finite = true;
  if (task_.layout->column_tiles()) {
    for (uint64_t row = 0; row < task_.layout->rows; ++row)
      all_finite &= observe_run(row * range.count(), range.count(), row * columns + range.begin);
  } else {
    all_finite = observe_run(0, range.count() * columns, range.begin * columns);
  }
  if (!all_finite && !saturates()) return first_not_finite(range);
  return {};
}

bool TensorSession::observe_run(uint64_t in_tile, uint64_t count, uint64_t in_tensor) {
  bool all_finite = true;
  for (uint64_t at = 0; at < count; at += kBlockElements)
    all_finite &= scales_->update(widened(in_tile + at, std::min(kBlockElements, count - at)), in_tensor + at) < 0;
  return all_finite;
}

Status TensorSession::next_pass() {
  if (!scales_) return error_at(ErrorCode::state_invalid, task_.name, "this tensor is quantized in one pass");
  return scales_->next_pass();
}

Result<std::span<const float>> TensorSession::state() {
  if (!scales_) return error_at(ErrorCode::state_invalid, task_.name, "this tensor is quantized in one pass");
  if (!TensorScales::shared(task_.layout)) TRY_VOID(scales_->finish(task_.name));
  return scales_->state();
}

Status TensorSession::take_state(std::span<const float> state) {
  if (!scales_) return error_at(ErrorCode::state_invalid, task_.name, "this tensor is quantized in one pass");
  return scales_->take_state(state, task_.name);
}

// The last tile also writes the padding between this tensor and the next.
void TensorSession::add_padding(uint64_t tile, uint64_t end, List<TileWrite>& writes) {
  if (task_.padding == 0 || tile + 1 != task_.tiles) return;
  scratch_.resize(task_.padding);
  std::fill_n(scratch_.data(), task_.padding, uint8_t{0});
  writes.push_back({task_.components.front().file, end, scratch_.data(), task_.padding});
}

Status TensorSession::give_scales(std::span<const QParams> qparams, float second_scale) {
  if (!scales_) scales_ = std::make_unique<TensorScales>(task_.layout, largest_scale());
  return scales_->give(qparams, second_scale, task_.name);
}

Result<TileResult> TensorSession::run(uint64_t tile) {
  const TileRange range = tile_range(task_, tile);
  TileResult result;
  if (task_.is_copy) {
    if (task_.factors->any()) TRY_VOID(multiply_copy(range));
    const Location& to = task_.components.front();
    result.writes.push_back({to.file, to.offset + range.begin, source_bytes_.data(), range.count()});
    add_padding(tile, to.offset + task_.source_bytes, result.writes);
    return result;
  }
  const WeightLayout& layout = task_.layout;
  TRY_VOID(arrange(range));
  if (scales_) {
    TRY_VOID(scales_->finish(task_.name));
    scales_may_lose_ = limit_.depends_on_scales() && limit_.may_lose(scales_->qparams());
  }
  sums_.clear();
  for (size_t c = 0; c < slices_.size(); ++c) slices_[c].resize(slice_of(layout, layout.components[c], range).bytes);
  if (layout.codes == CodeStorage::ggml_rows) {
    TRY_VOID(run_ggml(range));
  } else if (layout.codes == CodeStorage::source_values || layout.codes == CodeStorage::cast_values) {
    TRY_VOID(run_values(range));
  } else if (layout.codes == CodeStorage::rows_block_float) {
    TRY_VOID(run_blocks(range));
  } else if (layout.column_tiles()) {
    TRY_VOID(run_columns(range));
  } else {
    TRY_VOID(run_rows(range));
  }
  for (size_t c = 0; c < slices_.size(); ++c) {
    if (slices_[c].empty() || is_known(layout.components[c].role)) continue;
    const Slice slice = slice_of(layout, layout.components[c], range);
    result.writes.push_back(
        {task_.components[c].file, task_.components[c].offset + slice.offset, slices_[c].data(), slice.bytes});
  }
  if (layout.codes == CodeStorage::ggml_rows)
    add_padding(tile, task_.components.front().offset + layout.components.front().bytes, result.writes);
  result.sums = sums_;
  return result;
}

}  // namespace wasmquant
