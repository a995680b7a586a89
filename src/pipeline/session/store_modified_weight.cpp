// Stores a weight as a copy, by rows or with grouped columns, and reads the stored bytes back.
#include "pipeline/session/store_modified_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/message.h"
#include "families/head_interleave.h"
#include "pipeline/session/file_tensors.h"
#include "pipeline/session/session.h"
#include "pipeline/task/decoder.h"

namespace wasmquant {
namespace {

// The tensor as a single tile of float32.
TensorTask whole(const TensorTask& task) {
  TensorTask out = task;
  out.is_float32 = true;
  out.joined.clear();
  out.source_pitch = 0;
  out.change.is_transposed = false;
  out.tile_lines = out.layout->lines();
  out.tiles = 1;
  return out;
}

void fill(TensorSession& session, std::span<const float> weight) {
  for (const TileRead& read : session.reads(0)) std::memcpy(read.pointer, weight.data(), weight.size_bytes());
}

// An element of a bias corresponds to a row.
uint64_t row_length(const WeightLayout& layout) noexcept { return layout.rows == 1 ? 1 : layout.columns; }

// Reverts ValueTransform: values of file rows to those of model rows.
void undo(const TensorTask& task, std::vector<float>& values) {
  if (task.change.adds_one)
    for (float& v : values) v -= 1.0f;
  if (task.change.interleaved_rows == 0) return;
  const std::vector<float> stored = values;
  families::HeadInterleave(task.change.interleaved_rows).to_halves(stored, row_length(task.layout), values.data());
}

// Lines of `bytes` bytes, `pitch` bytes apart in the file.
void part_lines(size_t bytes, size_t pitch, StoredValues& stored) {
  List<StoredPiece> lines;
  for (const StoredPiece& piece : stored.pieces)
    for (size_t at = 0; at < piece.bytes.size(); at += bytes) {
      StoredPiece& line = lines.emplace_back();
      line.at = {piece.at.file, piece.at.offset + at / bytes * pitch};
      line.bytes.resize(bytes);
      std::memcpy(line.bytes.data(), piece.bytes.data() + at, bytes);
    }
  stored.pieces = std::move(lines);
}

// What is written of a matrix [rows, columns] where the file has [columns, rows].
void turn(const TensorTask& task, StoredValues& stored) {
  if (!task.change.is_transposed) return;
  const size_t rows = task.layout->rows, columns = task.layout->columns;
  const size_t element = stored.pieces.front().bytes.size() / (rows * columns);
  for (StoredPiece& piece : stored.pieces) {
    const size_t size = piece.bytes.size() / (rows * columns);
    Bytes turned;
    turned.resize(piece.bytes.size());
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        std::memcpy(turned.data() + (column * rows + row) * size, piece.bytes.data() + (row * columns + column) * size,
                    size);
    piece.bytes = std::move(turned);
  }
  if (task.source_pitch != 0) part_lines(rows * element, task.source_pitch * element, stored);
}

// Zeros behind the tensor.
void pad(const TensorTask& task, StoredValues& out) {
  if (task.padding == 0) return;
  StoredPiece& zeros = out.pieces.emplace_back();
  zeros.at = {task.components.front().file, task.components.front().offset + task.layout->components.front().bytes};
  zeros.bytes.resize(task.padding);
  std::memset(zeros.bytes.data(), 0, task.padding);
}

// A tensor that keeps its dtype.
Result<StoredValues> store_copy(const TensorTask& task, std::span<const float> given) {
  StoredValues out;
  std::vector<float> weight(given.begin(), given.end());
  if (const uint64_t head = task.change.interleaved_rows; head != 0)
    families::HeadInterleave(head).to_pairs(given, row_length(task.layout), weight.data());
  for (float& v : weight) v += task.change.adds_one ? 1.0f : 0.0f;
  const StorageDtype dtype = task.layout->components.front().dtype;
  if (dtype != StorageDtype::F32 && dtype != StorageDtype::F16 && dtype != StorageDtype::BF16)
    return error_at(ErrorCode::format_unsupported, task.name,
                    "is changed by the algorithm, but {} cannot store the new values; give it a spec, such as bfloat16",
                    info_of(dtype).name);
  StoredPiece& piece = out.pieces.emplace_back();
  piece.at = task.components.front();
  piece.bytes.resize(weight.size() * info_of(dtype).bits / 8);
  out.values.assign(weight.begin(), weight.end());
  if (dtype == StorageDtype::F32) {
    std::memcpy(piece.bytes.data(), weight.data(), piece.bytes.size());
  } else {
    auto* const bits = reinterpret_cast<uint16_t*>(piece.bytes.data());
    const bool is_bf16 = dtype == StorageDtype::BF16;
    (is_bf16 ? kernels::narrow_bf16 : kernels::narrow_f16)(weight, bits);
    (is_bf16 ? kernels::widen_bf16 : kernels::widen_f16)(std::span(bits, weight.size()), out.values.data());
  }
  for (size_t i = 0; i < weight.size(); ++i)
    if (std::isfinite(weight[i]) && !std::isfinite(out.values[i]))
      return error_at(
          ErrorCode::value_overflow, task.name,
          "would become {} at element {}, beyond {}. Give it a spec, such as bfloat16, or leave out the algorithm",
          weight[i], i, float_name_of(dtype));
  undo(task, out.values);
  turn(task, out);
  if (task.layout->components.front().bytes == weight.size() * info_of(dtype).bits / 8) pad(task, out);
  return out;
}

// The pieces written for a tile, and their values.
StoredValues read_back(const TensorTask& task, uint64_t tile, const TileResult& result,
                       std::span<const float> original) {
  StoredValues out;
  for (const TileWrite& write : result.writes) {
    StoredPiece& piece = out.pieces.emplace_back();
    piece.at = {write.file, write.offset};
    piece.bytes.resize(write.bytes);
    std::memcpy(piece.bytes.data(), write.pointer, write.bytes);
  }
  TensorTask stored = task;
  stored.change = {};
  if (stored.layout->codes == CodeStorage::ggml_rows)  // as in files
    stored.layout.edit([](WeightLayout& layout) { layout.codes = CodeStorage::source_values; });
  TensorDecoder decoder(std::move(stored));
  for (const TileRead& read : decoder.reads(tile))
    for (const StoredPiece& piece : out.pieces)
      if (piece.at.file == read.file && piece.at.offset == read.begin)
        std::memcpy(read.pointer, piece.bytes.data(), std::min<uint64_t>(piece.bytes.size(), read.row_bytes));
  const std::span<const float> values = decoder.decode(tile);
  out.values.assign(values.begin(), values.end());
  undo(task, out.values);
  out.error = kernels::error_between(original, out.values.data());
  return out;
}

}  // namespace

Result<WeightScales> observed_scales(const TensorTask& task, std::span<const float> weight, const ValueRange& joined,
                                     std::span<const float> squares) {
  const bool saturates = task.non_finite == NonFinite::saturate;
  const float largest = saturates ? value_limit_of(task.layout).largest_scale : std::numeric_limits<float>::infinity();
  SharedValue<WeightLayout> layout = task.layout;
  const uint64_t rows = layout->columns == 0 ? 0 : weight.size() / layout->columns;
  if (rows != layout->rows) {
    TRY(of_rows, granularity_of({rows, layout->columns}, layout->spec));
    layout.edit([&](WeightLayout& some) {
      some.shape = {some.rows = rows, some.columns};
      some.granularity = of_rows;
    });
  }
  const bool is_calibrated = !squares.empty() && refits_calibrated(layout->spec);
  if (is_calibrated && !layout->spec.scale_refit)
    layout.edit([](WeightLayout& calibrated) { calibrated.spec.scale_refit = true; });
  TensorScales scales(layout, largest);
  const uint32_t passes = TensorScales::passes_of_observer(layout);
  if (!task.importance.empty())
    TRY_VOID(scales.weigh(task.importance));
  else if (is_calibrated)
    TRY_VOID(scales.weigh(squares));
  scales.join(joined);
  TRY_VOID(scales.begin());
  for (uint32_t pass = 1; pass <= passes; ++pass) {
    if (pass > 1) TRY_VOID(scales.next_pass());
    scales.update(weight, 0);
  }
  TRY_VOID(scales.finish(task.name));
  return WeightScales{{scales.qparams().begin(), scales.qparams().end()}, scales.second_scale()};
}

Result<StoredValues> store_modified(const TensorTask& task, std::span<const float> weight, const WeightScales* scales,
                                    std::span<const float> original, const ValueRange& joined) {
  if (task.file) return task.file->store({}, weight);
  if (task.is_copy) return store_copy(task, weight);
  const TensorTask tile = whole(task);
  TensorSession session(tile);
  if (scales != nullptr) TRY_VOID(session.give_scales(scales->qparams, scales->second_scale));
  if (scales == nullptr && !joined.empty()) session.join(joined);
  fill(session, weight);
  for (uint32_t pass = 1; scales == nullptr && pass <= session.observe_passes(); ++pass) {
    if (pass > 1) TRY_VOID(session.next_pass());
    TRY_VOID(session.observe(0));
  }
  TRY(result, session.run(0));
  StoredValues out = read_back(tile, 0, result, original);
  turn(task, out);
  return out;
}

Result<StoredValues> store_grouped(const TensorTask& task, std::span<const uint8_t> codes,
                                   std::span<const QParams> qparams, std::span<const uint32_t> index,
                                   std::span<const float> values, std::span<const float> original) {
  const WeightLayout& layout = task.layout;
  if (layout.codes == CodeStorage::source_values) {
    TRY(out, store_copy(task, values));
    out.error = kernels::error_between(original, out.values.data());
    return std::move(out);
  }
  const TensorTask tile = whole(task);
  List<Bytes> slices(layout.components.size());
  List<uint8_t*> pointers(slices.size());
  for (size_t c = 0; c < slices.size(); ++c) {
    slices[c].resize(layout.components[c].bytes);
    pointers[c] = slices[c].data();
  }
  Bytes scratch;
  scratch.resize(codes.size());
  pack_tile(layout, {0, layout.lines()}, codes.data(), qparams, 1.0f, scratch.data(), pointers);
  TileResult result;
  bool holds_index = false;
  for (size_t c = 0; c < slices.size(); ++c) {
    const Role role = layout.components[c].role;
    if (is_known(role)) continue;
    if (role == Role::column_group) {
      std::memcpy(slices[c].data(), index.data(), index.size_bytes());
      holds_index = true;
    }
    result.writes.push_back({task.components[c].file, task.components[c].offset, slices[c].data(), slices[c].size()});
  }
  if (!holds_index)
    return error_at(ErrorCode::format_unsupported, task.name, "has no place for the groups of its columns");
  TensorTask stored = tile;
  stored.layout.edit([](WeightLayout& indexed) { indexed.reads_group_index = true; });
  return read_back(stored, 0, result, original);
}

Result<StoredValues> store_blocks(const TensorTask& task, std::span<const uint8_t> blocks,
                                  std::span<const float> original) {
  if (task.file) return task.file->store(blocks, original);
  const TensorTask tile = whole(task);
  const uint64_t rows = task.layout->rows, row_bytes = rows == 0 ? 0 : blocks.size() / rows;
  Bytes bytes;
  bytes.resize(blocks.size());
  const uint64_t head = task.change.interleaved_rows;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t from = head == 0 ? row : families::HeadInterleave(head).halves_row(row);
    std::memcpy(bytes.data() + row * row_bytes, blocks.data() + from * row_bytes, row_bytes);
  }
  TileResult result;
  result.writes.push_back({task.components.front().file, task.components.front().offset, bytes.data(), bytes.size()});
  StoredValues out = read_back(tile, 0, result, original);
  pad(task, out);
  const StorageDtype dtype = task.layout->components.front().dtype;
  const float most = kernels::reduce_absmax(original).value;
  const bool is_clipped = most > largest_value(*ggml_type_of(dtype)) && task.non_finite != NonFinite::saturate;
  if (is_clipped || kernels::find_non_finite(out.values) >= 0)
    return error_at(ErrorCode::value_overflow, task.name, "{} is beyond what {} can store. Exclude the layer", most,
                    info_of(dtype).name);
  return out;
}

bool can_store_rows(const TensorTask& task, uint64_t tile_rows) {
  const WeightLayout& layout = *task.layout;
  const bool needs_all = TensorScales::passes(layout, task.is_observed) != 0;
  if (task.change.is_transposed || task.file) return false;
  return task.is_copy || (!layout.column_tiles() && !needs_all && tile_rows % layout.line_multiple() == 0);
}

Result<StoredValues> store_modified_rows(const TensorTask& task, uint64_t tile_rows, uint64_t first_row,
                                         std::span<const float> values) {
  if (task.is_copy) {
    TRY(out, store_copy(task, values));
    Location& at = out.pieces.front().at;
    const std::vector<uint64_t>& shape = task.layout->components.front().shape;
    if (shape.size() > 1) at.offset += first_row * shape.back() * (out.pieces.front().bytes.size() / values.size());
    return std::move(out);
  }
  TensorTask tiled = task;
  tiled.is_float32 = true;
  tiled.tile_lines = tile_rows;
  tiled.tiles = (task.layout->lines() + tile_rows - 1) / tile_rows;
  TensorSession session(tiled);
  if (!can_store_rows(task, tile_rows))
    return error_at(
        ErrorCode::format_unsupported, task.name,
        "is changed by the rotation, but this format or scheme does not store rows apart. Exclude the layer");
  const uint64_t number = first_row / tile_rows;
  for (const TileRead& read : session.reads(number)) std::memcpy(read.pointer, values.data(), values.size_bytes());
  TRY(result, session.run(number));
  return read_back(tiled, number, result, values);
}

}  // namespace wasmquant
