#include "pipeline/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/list.h"
#include "observers/contiguous.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

// Values worked on at a time: input, codes and scratch of a block stay in the first-level cache.
constexpr uint64_t kBlockElements = 8192;
// Elements of a unit, about: large enough that its sums cost nothing, small enough for the second-level cache.
constexpr uint64_t kUnitElements = 65536;
// Columns of a unit of a column tile, about.
constexpr uint64_t kUnitColumns = 128;

uint32_t element_bytes(StorageDtype dtype) { return info_of(dtype).bits / 8; }

void widen(StorageDtype dtype, const uint8_t* bytes, uint64_t count, float* x) {
  const std::span<const uint16_t> bits(reinterpret_cast<const uint16_t*>(bytes), count);
  (dtype == StorageDtype::BF16 ? kernels::widen_bf16 : kernels::widen_f16)(bits, x);
}

void narrow(StorageDtype dtype, std::span<const float> x, uint8_t* bytes) {
  (dtype == StorageDtype::BF16 ? kernels::narrow_bf16 : kernels::narrow_f16)(x, reinterpret_cast<uint16_t*>(bytes));
}

// `count` scales of `length` consecutive elements each.
Granularity consecutive_scales(uint64_t count, uint64_t length) {
  Granularity g;
  g.outer = count;
  g.axis = g.block = length;
  g.split_outer = true;
  return g;
}

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

TensorSession::TensorSession(TensorTask task) : task_(std::move(task)) {
  slices_.resize(task_.layout.components.size());
  if (!task_.is_copy && needs_observer())
    observer_ = std::make_unique<RangeObserver>(task_.layout.granularity, task_.layout.spec);
}

bool TensorSession::needs_observer() const noexcept {
  return task_.layout.codes != CodeStorage::cast_values && !info_of(task_.layout.spec.dtype).is_block() &&
         !task_.layout.single_pass();
}

uint64_t TensorSession::unit_lines() const noexcept { return unit_lines_of(task_.layout); }

uint64_t unit_lines_of(const WeightLayout& layout) noexcept {
  const uint64_t multiple = layout.line_multiple();
  if (layout.column_tiles()) return round_up(kUnitColumns, multiple);
  const uint64_t line = std::max<uint64_t>(layout.line_elements(), 1);
  return round_up(std::max<uint64_t>(kUnitElements / line, 1), multiple);
}

List<TileRead> TensorSession::reads(uint64_t tile) {
  const TileRange range = tile_range(task_, tile);
  TileRead read;
  read.file = task_.source.file;
  read.rows = 1;
  if (task_.is_copy) {
    read.begin = task_.source.offset + range.begin;
    read.row_bytes = range.count();
  } else {
    const uint64_t element = element_bytes(task_.layout.source);
    if (task_.layout.column_tiles()) {
      read.begin = task_.source.offset + range.begin * element;
      read.row_bytes = range.count() * element;
      read.stride = task_.layout.columns * element;
      read.rows = task_.layout.rows;
    } else {
      read.begin = task_.source.offset + range.begin * task_.layout.columns * element;
      read.row_bytes = range.count() * task_.layout.columns * element;
    }
  }
  input_.resize(read.row_bytes * read.rows);
  read.pointer = input_.data();
  return {read};
}

std::span<const float> TensorSession::widened(uint64_t element, uint64_t count) {
  if (task_.layout.source == StorageDtype::F32)
    return std::span(reinterpret_cast<const float*>(input_.data()) + element, count);
  if (block_.size() < count) block_.resize(count);
  widen(task_.layout.source, input_.data() + 2 * element, count, block_.data());
  return std::span<const float>(block_.data(), count);
}

Error TensorSession::not_finite(std::span<const float> x, uint64_t first_element) const {
  const auto at = std::find_if(x.begin(), x.end(), [](float v) { return !std::isfinite(v); });
  const uint64_t element = first_element + static_cast<uint64_t>(at - x.begin());
  std::string message = std::isnan(*at) ? "NaN" : *at > 0 ? "+Infinity" : "-Infinity";
  message += text_of(" at element {}", element);
  if (task_.layout.shape.size() > 1) {
    message += text_of(" (row {}, column {})", element / task_.layout.columns, element % task_.layout.columns);
  }
  return error_at(ErrorCode::value_not_finite, task_.name,
                  "{}; weights must be finite. Mend the model, exclude the layer, or set \"non_finite\": \"saturate\"",
                  message);
}

Status TensorSession::observe(uint64_t tile) {
  if (!observer_) return error_at(ErrorCode::state_invalid, task_.name, "this tensor is quantized in one pass");
  const TileRange range = tile_range(task_, tile);
  const uint64_t first = range.begin * task_.layout.columns, count = range.count() * task_.layout.columns;
  for (uint64_t at = 0; at < count; at += kBlockElements) {
    const std::span<const float> x = widened(at, std::min(kBlockElements, count - at));
    const int64_t bad = observer_->update(x, first + at);
    if (bad >= 0 && task_.non_finite == NonFinite::error) return not_finite(x, first + at);
  }
  has_qparams_ = false;
  return {};
}

std::span<const float> TensorSession::state() {
  state_.clear();
  if (observer_) {
    state_.append(observer_->min().begin(), observer_->min().end());
    state_.append(observer_->max().begin(), observer_->max().end());
  }
  return state_;
}

Status TensorSession::merge_state(std::span<const float> state) {
  if (!observer_ || state.size() != 2 * observer_->min().size()) {
    return error_at(ErrorCode::state_invalid, task_.name, "observer state of another tensor");
  }
  observer_->merge(state.first(state.size() / 2), state.last(state.size() / 2));
  has_qparams_ = false;
  return {};
}

Status TensorSession::run_rows(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const bool single = layout.single_pass();
  const uint64_t length = single ? layout.granularity.contiguous_elements() : 0;
  const uint64_t block = single ? length * std::max<uint64_t>(kBlockElements / length, 1) : kBlockElements;
  const uint64_t step = unit_lines();
  List<uint8_t*> out(slices_.size());
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    const TileRange unit{begin, std::min(begin + step, tile.end)};
    const uint64_t in_tile = (unit.begin - tile.begin) * layout.columns, count = unit.count() * layout.columns;
    const uint64_t in_tensor = unit.begin * layout.columns;
    if (single) qparams_.resize(tile_scale_count(layout, unit));
    codes_.resize(count);
    scratch_.resize(count);
    kernels::ErrorSums sums;
    for (uint64_t at = 0; at < count; at += block) {
      const std::span<const float> x = widened(in_tile + at, std::min(block, count - at));
      if (single) {
        const std::span<QParams> q = std::span(qparams_).subspan(at / length, x.size() / length);
        if (!observe_contiguous(x, length, layout.spec, q) && task_.non_finite == NonFinite::error)
          return not_finite(x, in_tensor + at);
        make_storable(q);
        const Granularity g = consecutive_scales(q.size(), length);
        quantize(g, layout.spec, q, kernels::Path::real, x, 0, codes_.data() + at);
        sums.append(quantization_error(g, layout.spec, q, x, codes_.data() + at, 0));
      } else {
        quantize(layout.granularity, layout.spec, qparams_, kernels::Path::real, x, in_tensor + at, codes_.data() + at);
        sums.append(
            quantization_error(layout.granularity, layout.spec, qparams_, x, codes_.data() + at, in_tensor + at));
      }
    }
    sums_.push_back(sums);
    for (size_t c = 0; c < slices_.size(); ++c) {
      const Component& component = layout.components[c];
      out[c] =
          slices_[c].data() + (slice_of(layout, component, unit).offset - slice_of(layout, component, tile).offset);
    }
    pack_tile(layout, unit, codes_.data(), qparams_, second_scale_, scratch_.data(), out);
  }
  return {};
}

Status TensorSession::run_columns(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const uint64_t width = tile.count(), length = layout.granularity.block, groups = width / length;
  const uint64_t band = unit_lines();
  sums_.resize((width + band - 1) / band);
  qparams_.resize(tile_scale_count(layout, tile));
  codes_.resize(layout.rows * width);
  scratch_.resize(layout.rows * width);
  for (uint64_t row = 0; row < layout.rows; ++row) {
    const std::span<const float> x = widened(row * width, width);
    const std::span<QParams> q = std::span(qparams_).subspan(row * groups, groups);
    uint8_t* codes = codes_.data() + row * width;
    if (!observe_contiguous(x, length, layout.spec, q) && task_.non_finite == NonFinite::error) {
      return not_finite(x, row * layout.columns + tile.begin);
    }
    quantize(consecutive_scales(groups, length), layout.spec, q, kernels::Path::real, x, 0, codes);
    for (uint64_t begin = 0; begin < width; begin += band) {
      const uint64_t count = std::min(band, width - begin), scales = count / length;
      sums_[begin / band].append(quantization_error(consecutive_scales(scales, length), layout.spec,
                                                    q.subspan(begin / length, scales), x.subspan(begin, count),
                                                    codes + begin, 0));
    }
  }
  List<uint8_t*> out(slices_.size());
  for (size_t c = 0; c < slices_.size(); ++c) out[c] = slices_[c].data();
  pack_tile(layout, tile, codes_.data(), qparams_, second_scale_, scratch_.data(), out);
  return {};
}

// Scales that are stored in 8 bits have a smallest one: the codes are chosen for what will be read back.
void TensorSession::make_storable(std::span<QParams> qparams) const noexcept {
  if (task_.layout.spec.scale_format == ScaleFormat::float32) return;
  for (QParams& q : qparams) q.scale = storable_scale(task_.layout, q.scale, second_scale_);
}

// Block dtypes: row by row, exponents, shifts and codes in one stream.
Status TensorSession::run_blocks(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const BlockFloatFormat format = block_float_of(layout.spec.dtype, static_cast<uint32_t>(layout.granularity.block));
  const size_t row_bytes = packing::block_row_bytes(layout.columns, format);
  std::vector<uint8_t> exponents(layout.granularity.blocks()), shifts((layout.columns + 1) / 2);
  std::vector<int8_t> codes(layout.columns);
  values_.resize(layout.columns);
  const uint64_t step = unit_lines();
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    kernels::ErrorSums sums;
    for (uint64_t line = begin; line < std::min(begin + step, tile.end); ++line) {
      const uint64_t in_tile = line - tile.begin;
      const std::span<const float> x = widened(in_tile * layout.columns, layout.columns);
      if (task_.non_finite == NonFinite::error && !kernels::reduce_absmax(x).all_finite)
        return not_finite(x, line * layout.columns);
      kernels::quantize_block_float(x, format, exponents.data(), shifts.data(), codes.data());
      kernels::dequantize_block_float(codes, format, exponents.data(), shifts.data(), values_.data());
      sums.append(kernels::error_between(x, values_.data()));
      packing::pack_block_row(codes, format, exponents.data(), shifts.data(),
                              slices_.front().data() + in_tile * row_bytes);
    }
    sums_.push_back(sums);
  }
  return {};
}

// Values instead of codes: fake-quantized weights and plain casts, row tiles both.
Status TensorSession::run_values(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const bool is_cast = layout.codes == CodeStorage::cast_values;
  const bool single = !is_cast && layout.single_pass();
  const StorageDtype stored = layout.components.front().dtype;
  const uint64_t length = single ? layout.granularity.contiguous_elements() : 0;
  const bool is_block = info_of(layout.spec.dtype).is_block();
  const uint64_t block = is_block ? layout.columns  // whole lines
                         : single ? length * std::max<uint64_t>(kBlockElements / length, 1)
                                  : kBlockElements;
  const uint64_t step = unit_lines();
  std::vector<QParams> local;
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    const uint64_t lines = std::min(step, tile.end - begin);
    const uint64_t in_tile = (begin - tile.begin) * layout.columns, count = lines * layout.columns,
                   in_tensor = begin * layout.columns;
    kernels::ErrorSums sums;
    for (uint64_t at = 0; at < count; at += block) {
      const std::span<const float> x = widened(in_tile + at, std::min(block, count - at));
      uint8_t* out = slices_.front().data() + (in_tile + at) * element_bytes(stored);
      if (values_.size() < x.size()) values_.resize(x.size());
      if (is_cast || is_block) {
        if (task_.non_finite == NonFinite::error && !kernels::reduce_absmax(x).all_finite)
          return not_finite(x, in_tensor + at);
        if (is_block)
          fake_quantize_blocks(layout.granularity, layout.spec, x, values_.data());
        else
          std::copy(x.begin(), x.end(), values_.begin());
      } else if (single) {
        local.resize(x.size() / length);
        if (!observe_contiguous(x, length, layout.spec, local) && task_.non_finite == NonFinite::error)
          return not_finite(x, in_tensor + at);
        fake_quantize(consecutive_scales(local.size(), length), layout.spec, local, x, 0, values_.data());
      } else {
        fake_quantize(layout.granularity, layout.spec, qparams_, x, in_tensor + at, values_.data());
      }
      if (stored == StorageDtype::F32) {
        std::memcpy(out, values_.data(), 4 * x.size());
      } else {  // the error is that of the stored values
        narrow(stored, std::span(values_).first(x.size()), out);
        widen(stored, out, x.size(), values_.data());
      }
      sums.append(kernels::error_between(x, values_.data()));
    }
    sums_.push_back(sums);
  }
  return {};
}

Result<TileResult> TensorSession::run(uint64_t tile) {
  const TileRange range = tile_range(task_, tile);
  TileResult result;
  if (task_.is_copy) {
    const Location& to = task_.components.front();
    result.writes.push_back({to.file, to.offset + range.begin, input_.data(), range.count()});
    return result;
  }
  const WeightLayout& layout = task_.layout;
  if (observer_ && !has_qparams_) {
    qparams_ = observer_->finish();
    if (layout.spec.scale_format == ScaleFormat::e4m3) second_scale_ = observer_->second_scale();
    if (layout.codes != CodeStorage::source_values) make_storable(qparams_);
    has_qparams_ = true;
  }
  sums_.clear();
  for (size_t c = 0; c < slices_.size(); ++c) slices_[c].resize(slice_of(layout, layout.components[c], range).bytes);
  if (layout.codes == CodeStorage::source_values || layout.codes == CodeStorage::cast_values) {
    TRY_VOID(run_values(range));
  } else if (layout.codes == CodeStorage::rows_block_float) {
    TRY_VOID(run_blocks(range));
  } else if (layout.column_tiles()) {
    TRY_VOID(run_columns(range));
  } else {
    TRY_VOID(run_rows(range));
  }
  for (size_t c = 0; c < slices_.size(); ++c) {
    if (slices_[c].empty() || layout.components[c].role == Role::shape) continue;
    const Slice slice = slice_of(layout, layout.components[c], range);
    result.writes.push_back(
        {task_.components[c].file, task_.components[c].offset + slice.offset, slices_[c].data(), slice.bytes});
  }
  result.sums = sums_;
  return result;
}

}  // namespace wasmquant
