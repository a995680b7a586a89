// The order of passes, and what a tile writes.
#include "pipeline/session/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "pipeline/task/to_float32.h"

namespace wasmquant {
namespace {

std::unique_ptr<TileEncoder> encoder_of(const EncoderInput& in) {
  const WeightLayout& layout = in.task.layout;
  switch (layout.codes) {
    case CodeStorage::ggml_rows:
      return ggml_encoder(in);
    case CodeStorage::source_values:
    case CodeStorage::cast_values:
      return value_encoder(in);
    case CodeStorage::rows_block_float:
      return block_float_encoder(in);
    default:
      return layout.column_tiles() ? column_encoder(in) : row_encoder(in);
  }
}

}  // namespace

TensorSession::TensorSession(TensorTask task) : task_(std::move(task)), source_(task_), check_(task_) {
  const WeightLayout& layout = task_.layout;
  if (task_.is_copy) return;
  if (task_.is_observed || TensorScales::needed(layout))
    scales_ = std::make_unique<TensorScales>(layout, check_.largest_scale());
  out_.slices.resize(layout.components.size());
  encoder_ = encoder_of({task_, source_, check_, scales_});
}

TensorSession& TensorSession::joined(uint64_t& tile) {
  tile -= task_.tiles;
  size_t number = 0;
  for (; number + 1 < task_.joined.size() && tile >= task_.joined[number]->tiles; ++number)
    tile -= task_.joined[number]->tiles;
  const TensorTask& task = *task_.joined[number];
  if (!joined_ || joined_->task().name != task.name) joined_ = std::make_unique<TensorSession>(task);
  return *joined_;
}

List<TileRead> TensorSession::reads(uint64_t tile) {
  if (tile >= task_.tiles && !task_.joined.empty()) return joined(tile).reads(tile);
  joined_.reset();
  return source_.reads(tile);
}

Status TensorSession::needs_scales() const {
  if (scales_) return {};
  return error_at(ErrorCode::state_invalid, task_.name, "this tensor is quantized in one pass");
}

Status TensorSession::observe(uint64_t tile) {
  TRY_VOID(needs_scales());
  if (tile >= task_.tiles && !task_.joined.empty()) {
    TensorSession& other = joined(tile);
    TRY_VOID(other.observe(tile));
    join(other.scales_->observed());
    return {};
  }
  if (!task_.importance.empty() && !std::exchange(is_weighed_, true)) TRY_VOID(scales_->weigh(task_.importance));
  TRY_VOID(scales_->begin());
  const TileRange range = tile_range(task_, tile);
  TRY_VOID(source_.arrange(range));
  const uint64_t columns = task_.layout->columns;
  bool all_finite = true;
  if (task_.layout->column_tiles()) {
    for (uint64_t row = 0; row < task_.layout->rows; ++row)
      all_finite &= observe_run(row * range.count(), range.count(), row * columns + range.begin);
  } else {
    all_finite = observe_run(0, range.count() * columns, range.begin * columns);
  }
  if (!all_finite && !check_.saturates()) return check_.first_not_finite(range, source_);
  return {};
}

bool TensorSession::observe_run(uint64_t in_tile, uint64_t count, uint64_t in_tensor) {
  bool all_finite = true;
  for (uint64_t at = 0; at < count; at += kBlockElements)
    all_finite &=
        scales_->update(source_.values(in_tile + at, std::min(kBlockElements, count - at)), in_tensor + at) < 0;
  return all_finite;
}

Status TensorSession::next_pass() {
  TRY_VOID(needs_scales());
  return scales_->next_pass();
}

Result<std::span<const float>> TensorSession::state() {
  TRY_VOID(needs_scales());
  if (!TensorScales::shared(task_.layout)) TRY_VOID(scales_->finish(task_.name));
  return scales_->state();
}

Status TensorSession::take_state(std::span<const float> state) {
  TRY_VOID(needs_scales());
  return scales_->take_state(state, task_.name);
}

Status TensorSession::give_scales(std::span<const QParams> qparams, float second_scale) {
  if (!scales_) scales_ = std::make_unique<TensorScales>(task_.layout, check_.largest_scale());
  return scales_->give(qparams, second_scale, task_.name);
}

Result<TileResult> TensorSession::run(uint64_t tile) {
  if (task_.is_copy) return copy(tile);
  const TileRange range = tile_range(task_, tile);
  const WeightLayout& layout = task_.layout;
  TRY_VOID(source_.arrange(range));
  if (scales_) {
    TRY_VOID(scales_->finish(task_.name));
    check_.know(scales_->qparams());
  }
  out_.errors.clear();
  for (size_t c = 0; c < out_.slices.size(); ++c)
    out_.slices[c].resize(slice_of(layout, layout.components[c], range).bytes);
  TRY_VOID(encoder_->encode(range, out_));
  TileResult result;
  for (size_t c = 0; c < out_.slices.size(); ++c) {
    if (out_.slices[c].empty() || is_known(layout.components[c].role)) continue;
    const Slice slice = slice_of(layout, layout.components[c], range);
    result.writes.push_back(
        {task_.components[c].file, task_.components[c].offset + slice.offset, out_.slices[c].data(), slice.bytes});
  }
  if (layout.codes == CodeStorage::ggml_rows)
    add_padding(tile, task_.components.front().offset + layout.components.front().bytes, result.writes);
  result.sums = out_.errors;
  return result;
}

Result<TileResult> TensorSession::copy(uint64_t tile) {
  const TileRange range = tile_range(task_, tile);
  if (task_.factors->any()) TRY_VOID(multiply_copy(range));
  const Location& to = task_.components.front();
  TileResult result;
  result.writes.push_back({to.file, to.offset + range.begin, source_.bytes().data(), range.count()});
  add_padding(tile, to.offset + task_.source_bytes, result.writes);
  return result;
}

Status TensorSession::multiply_copy(const TileRange& bytes) {
  const StorageDtype dtype = task_.layout->components.front().dtype;
  const uint64_t size = info_of(dtype).bits / 8, count = bytes.count() / size, first = bytes.begin / size;
  std::vector<float> x(count), y(count);
  to_float32(dtype, source_.bytes().data(), count, x.data());
  for (uint64_t i = 0; i < count; ++i) y[i] = x[i] * task_.factors->of(first + i);
  store_values(dtype, y, check_, source_.bytes().data());
  for (uint64_t i = 0; i < count && !check_.saturates(); ++i)
    if (std::isfinite(x[i]) && !std::isfinite(y[i]))
      return error_at(ErrorCode::value_overflow, task_.name,
                      "{} {}, multiplied by the batch norm's factor {}, exceeds the range of {}", x[i],
                      check_.place_of(first + i), task_.factors->of(first + i), float_name_of(dtype));
  return {};
}

// The last tile also writes the padding between this tensor and the next.
void TensorSession::add_padding(uint64_t tile, uint64_t end, List<TileWrite>& writes) {
  if (task_.padding == 0 || tile + 1 != task_.tiles) return;
  padding_.resize(task_.padding);
  std::fill_n(padding_.data(), task_.padding, uint8_t{0});
  writes.push_back({task_.components.front().file, end, padding_.data(), task_.padding});
}

}  // namespace wasmquant
