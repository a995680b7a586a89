// Reads of a tile, weights that are made of others, and changes to the values.
#include "pipeline/task/decoder.h"

#include <algorithm>
#include <cmath>

#include "core/list.h"
#include "families/head_interleave.h"
#include "numeric/exponential.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {

TensorDecoder::TensorDecoder(TensorTask task) : task_(std::move(task)), slices_(task_.layout->components.size()) {
  task_.layout.edit([](WeightLayout& layout) { layout.is_stored = true; });
  stages_ = progressive_stages(task_.layout);
  const Assembly& assembly = task_.assembly;
  const uint64_t rounds = rounds_of(0).count();
  for (const auto& stored : assembly.parts) {
    TensorTask part = stored->task;
    part.tile_lines = part.layout->lines() / (assembly.takes_turns ? 1 : assembly.rounds) * rounds;
    parts_.push_back(std::make_unique<TensorDecoder>(std::move(part)));
  }
}

TileRange TensorDecoder::range_of(uint64_t tile) const noexcept {
  const uint64_t lines = task_.has_column_tiles() ? task_.layout->columns : task_.layout->rows;
  const uint64_t begin = std::min(tile * task_.tile_lines, lines);
  return {begin, std::min(begin + task_.tile_lines, lines)};
}

TileRange TensorDecoder::rounds_of(uint64_t tile) const noexcept {
  const uint64_t lines = std::max<uint64_t>(task_.layout->rows / task_.assembly->rounds, 1);
  const TileRange range = range_of(tile);
  return {range.begin / lines, (range.end + lines - 1) / lines};
}

List<TileRead> TensorDecoder::reads(uint64_t tile) {
  if (!parts_.empty()) {
    List<TileRead> all;
    const TileRange turns = task_.assembly->takes_turns ? rounds_of(tile) : TileRange{0, parts_.size()};
    for (uint64_t part = turns.begin; part < std::min<uint64_t>(turns.end, parts_.size()); ++part)
      for (TileRead& read : parts_[part]->reads(task_.assembly->takes_turns ? 0 : tile)) all.push_back(read);
    return all;
  }
  const WeightLayout& layout = task_.layout;
  const TileRange range = range_of(tile);
  List<TileRead> reads;
  for (size_t c = 0; c < slices_.size(); ++c) {
    const Component& component = layout.components[c];
    TileRead read{static_cast<uint32_t>(c), task_.components[c].file, 0, 0, 0, 1, nullptr};
    if (task_.by_columns) {
      const uint64_t element = info_of(component.dtype).bits / 8;
      read.begin = task_.components[c].offset + range.begin * element;
      read.row_bytes = range.count() * element;
      read.stride = (task_.source_pitch != 0 ? task_.source_pitch : layout.columns) * element;
      read.rows = layout.rows;
    } else {
      const Slice slice = slice_to_read(layout, component, range);
      if (slice.bytes == 0) continue;
      read.begin = task_.components[c].offset + slice.offset;
      read.row_bytes = slice.bytes;
    }
    slices_[c].resize(read.row_bytes * read.rows);
    read.pointer = slices_[c].data();
    reads.push_back(read);
  }
  return reads;
}

std::span<const float> TensorDecoder::decode(uint64_t tile) {
  std::span<const float> values = parts_.empty() ? stored_values(range_of(tile)) : assembled_values(tile);
  const ValueTransform& change = task_.change;
  if (change.is_transposed) values = transposed(values, task_.layout->rows, range_of(tile).count());
  if (const uint64_t head = change.interleaved_rows; head != 0) {
    const families::HeadInterleave rows(head);
    rearranged_.resize(values.size());
    if (change.inverse)
      rows.to_halves(values, task_.layout->columns, rearranged_.data());
    else
      rows.to_pairs(values, task_.layout->columns, rearranged_.data());
    values = rearranged_;
  }
  if (change.adds_one) {
    const float one = change.inverse ? -1.0f : 1.0f;
    rearranged_.assign(values.begin(), values.end());
    for (float& v : rearranged_) v += one;
    values = rearranged_;
  }
  return values;
}

std::span<const float> TensorDecoder::assembled_values(uint64_t tile) {
  const Assembly& assembly = task_.assembly;
  const TileRange rounds = rounds_of(tile);
  values_.clear();
  List<std::span<const float>> parts;
  if (!assembly.takes_turns)
    for (const auto& part : parts_) parts.push_back(part->decode(tile));
  for (uint64_t round = rounds.begin; round < rounds.end; ++round) {
    if (assembly.takes_turns && round >= parts_.size()) {
      values_.resize(values_.size() + task_.layout->rows / assembly.rounds * task_.layout->columns);
      continue;
    }
    List<std::span<const float>> shares;
    if (assembly.takes_turns) shares.push_back(parts_[round]->decode(0));
    for (const std::span<const float>& part : parts) {
      const uint64_t share = part.size() / rounds.count();
      shares.push_back(part.subspan((round - rounds.begin) * share, share));
    }
    add_round(std::move(shares));
  }
  const uint64_t columns = std::max<uint64_t>(task_.layout->columns, 1), first = range_of(tile).begin;
  for (uint64_t i = 0; i < values_.size(); ++i) {
    values_[i] += assembly.addend;
    for (const RowScales& scales : assembly.scales) {
      const float scale = scales.values[(first + i / columns) % scales.values.size()];
      values_[i] = scales.divides ? values_[i] / scale : values_[i] * scale;
    }
    if (assembly.is_logarithm && !std::isnan(values_[i]))
      values_[i] = -static_cast<float>(exp2_of(double{values_[i]} / kLn2));
  }
  return values_;
}

void TensorDecoder::add_round(List<std::span<const float>> shares) {
  const Assembly& assembly = task_.assembly;
  round_.clear();
  if (const uint64_t run = assembly.interleaved; run != 0) {
    for (uint64_t at = 0; at < shares.front().size(); at += run)
      for (const std::span<const float>& share : shares)
        round_.insert(round_.end(), share.data() + at, share.data() + at + run);
  } else {
    for (const std::span<const float>& share : shares) {
      const size_t at = round_.size();
      round_.resize(at + share.size());
      if (at == 0 && assembly.is_first_transposed)
        packing::transpose_floats(share.data(), assembly.columns, share.size() / assembly.columns, round_.data());
      else
        std::copy(share.begin(), share.end(), round_.data() + at);
    }
  }
  for (const StridedView& view : assembly.views) view.copy(round_, values_);
  if (!assembly.views.empty()) return;
  const size_t at = values_.size();
  values_.resize(at + round_.size());
  if (assembly.is_transposed)
    packing::transpose_floats(round_.data(), round_.size() / assembly.columns, assembly.columns, values_.data() + at);
  else
    std::copy(round_.begin(), round_.end(), values_.data() + at);
}

std::span<const float> TensorDecoder::transposed(std::span<const float> values, uint64_t rows, uint64_t columns) {
  rearranged_.resize(values.size());
  packing::transpose_floats(values.data(), rows, columns, rearranged_.data());
  return rearranged_;
}

}  // namespace wasmquant
