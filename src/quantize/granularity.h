// Which elements of a tensor share one scale.
//
// A shape is seen as [outer, axis, inner] around ch_axis. Along `axis`, `block` consecutive positions share a scale;
// outer and inner positions share it too (per_tensor, per_channel) or have separate ones (per_group).
// Internal scale order: [outer?][axis / block][inner?], so that runs along the innermost dimension stay contiguous.
//   per_tensor [4, 6]             -> 1 scale
//   per_channel [4, 6], ch_axis 0 -> 4 scales
//   per_group [4, 6], ch_axis 1, group_size 3 -> [4, 2] = 8 scales;   ch_axis 0, group_size 2 -> 2 x 6 = 12 scales
//   per_block [4, 6], 2 x 4 -> [2, 2] = 4 scales
// Integer groups divide the axis; groups of floats and block dtypes, and 2-D blocks, may end short (zero padded).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "config/spec/spec.h"
#include "core/result.h"

namespace wasmquant {

/// The arrangement of a tensor's scales.
struct Granularity {
  uint64_t outer = 1, axis = 1, inner = 1;
  uint64_t block = 1;        // positions along axis that share a scale; the last block may be shorter
  uint64_t outer_block = 1;  // outer positions that share a scale, when split_outer (per_block)
  bool split_outer = false;  // each outer position has its own scales
  bool split_inner = false;  // each inner position has its own scales
  uint64_t last = 1;         // length of the last dimension, when that is part of inner; else 1
  std::vector<uint64_t>
      scale_shape;  // as in Quark: [] · [channels] · [rows, groups per row] after swapping ch_axis last

  uint64_t element_count() const noexcept { return outer * axis * inner; }
  uint64_t blocks() const noexcept { return axis / block + (axis % block != 0); }
  uint64_t scale_count() const noexcept {
    const uint64_t rows = split_outer ? outer / outer_block + (outer % outer_block != 0) : 1;
    return rows * blocks() * (split_inner ? inner : 1);
  }
  /// The length of each scale's elements in the flat tensor, if those of every scale are consecutive and of one length:
  /// per_group along the last axis in groups that divide it, per_channel with nothing before the axis, per_tensor. At
  /// least 1. Nothing if the last group is short, or there are no elements.
  std::optional<uint64_t> run_length() const noexcept {
    if (axis % block != 0 || outer_block != 1 || inner == 0) return std::nullopt;
    if (inner == 1 && split_outer) return block;
    if (!split_inner && (outer == 1 || split_outer)) return block * inner;
    return std::nullopt;
  }

  friend bool operator==(const Granularity&, const Granularity&) = default;
};

/// `count` scales of `length` consecutive elements each.
Granularity one_scale_per_run(uint64_t count, uint64_t length) noexcept;

/// Errors: shape-mismatch (ch_axis out of range, groups along an empty axis, more than 2^64 elements),
/// group-size-invalid (names the sizes that fit), spec-invalid (per_block without a block size, or on a tensor that is
/// not 2-D). bfloat16 and float16 are always per_tensor.
Result<Granularity> granularity_of(const std::vector<uint64_t>& shape, const QuantizationSpec& spec);

/// One run of consecutive elements that use one scale (scale_stride 0) or consecutive scales (scale_stride 1).
struct Run {
  uint64_t begin;  // flat element index
  uint64_t count;
  uint64_t scale;  // internal index of the first element's scale
  uint64_t scale_stride;
};

/// Calls visit(Run) over the elements [begin, end) in order. Runs end where a line [axis, inner], a block of one scale
/// (stride 0) or a row of scales along the innermost dimension (stride 1) does.
template <class Visit>
void for_each_run(const Granularity& g, uint64_t begin, uint64_t end, Visit&& visit) {
  const uint64_t line = g.axis * g.inner;
  if (begin >= end) return;
  const bool by_inner = g.split_inner && g.inner > 1;               // each inner position its own scale
  const bool by_axis = g.inner == 1 && g.block == 1 && g.axis > 1;  // channels along the last axis
  const uint64_t unit = by_inner ? g.inner : by_axis ? g.axis : g.block * g.inner;
  const uint64_t scales_of_line = g.blocks() * (g.split_inner ? g.inner : 1);
  uint64_t outer = begin / line, in_line = begin % line;
  while (begin < end) {
    const uint64_t base = g.split_outer ? outer / g.outer_block * scales_of_line : 0;
    uint64_t index = in_line / unit, offset = in_line % unit;  // of the unit, and in it
    while (in_line < line && begin < end) {
      uint64_t count = unit - offset;
      if (count > line - in_line) count = line - in_line;  // the short block
      if (count > end - begin) count = end - begin;
      if (by_inner)
        visit(Run{begin, count, base + index / g.block * g.inner + offset, 1});
      else
        visit(Run{begin, count, base + (by_axis ? offset : index), by_axis ? uint64_t{1} : uint64_t{0}});
      begin += count;
      in_line += count;
      offset = 0;
      ++index;
    }
    in_line = 0;
    ++outer;
  }
}

/// Internal order to the order of scale_shape, `scale_count()` values each. They differ where inner positions have
/// separate scales: internal [outer, groups, middle, last] is [outer, last, middle, groups] after the swap of ch_axis
/// and the last dimension.
void to_scale_shape_order(const Granularity& g, const float* internal, float* ordered);
void from_scale_shape_order(const Granularity& g, const float* ordered, float* internal);

}  // namespace wasmquant
