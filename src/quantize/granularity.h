// Which elements of a tensor share one scale.
//
// A shape is seen as [outer, axis, inner] around ch_axis. Along `axis`, `block` consecutive positions share a scale;
// outer and inner positions share it too (per_tensor, per_channel) or have their own (per_group).
// Internal scale order: [outer?][axis / block][inner?], so that runs along the innermost dimension stay contiguous.
//   per_tensor [4, 6]             -> 1 scale
//   per_channel [4, 6], ch_axis 0 -> 4 scales
//   per_group [4, 6], ch_axis 1, group_size 3 -> [4, 2] = 8 scales;   ch_axis 0, group_size 2 -> 2 x 6 = 12 scales
#pragma once
#include <cstdint>
#include <vector>

#include "config/spec.h"
#include "core/result.h"

namespace wasmquant {

struct Granularity {
  uint64_t outer = 1, axis = 1, inner = 1;
  uint64_t block = 1;        // positions along axis that share a scale; divides axis
  bool split_outer = false;  // each outer position has its own scales
  bool split_inner = false;  // each inner position has its own scales
  uint64_t last = 1;         // length of the last dimension, when that is part of inner; else 1
  std::vector<uint64_t>
      scale_shape;  // as Quark gives it: [] · [channels] · [rows, groups per row] after swapping ch_axis last

  uint64_t element_count() const noexcept { return outer * axis * inner; }
  uint64_t scale_count() const noexcept {
    return (split_outer ? outer : 1) * (axis / block) * (split_inner ? inner : 1);
  }
  /// Elements after which a whole number of scales is complete, when scales cover contiguous runs of the flat tensor
  /// (per_group along the last axis, per_channel with nothing before the axis); 0 when they do not.
  uint64_t contiguous_elements() const noexcept {
    if (inner == 1 && split_outer) return block;
    if (!split_inner && (outer == 1 || split_outer)) return block * inner;
    return 0;
  }
};

/// Errors: shape-mismatch (ch_axis out of range, groups along an empty axis, more than 2^64 elements),
/// group-size-invalid (names the sizes that fit), spec-invalid (per_block). bfloat16 and float16 are per_tensor,
/// whatever the spec says.
Result<Granularity> granularity_of(const std::vector<uint64_t>& shape, const QuantizationSpec& spec);

/// One run of consecutive elements that use one scale (scale_stride 0) or consecutive scales (scale_stride 1).
struct Run {
  uint64_t begin;  // flat element index
  uint64_t count;
  uint64_t scale;  // internal index of the first element's scale
  uint64_t scale_stride;
};

/// Calls visit(Run) over the elements [begin, end) in order. Runs end where units do: a unit is a row of scales along
/// the innermost dimension (stride 1) or a block of one scale (stride 0), so the only divisions are at the start.
template <class Visit>
void for_each_run(const Granularity& g, uint64_t begin, uint64_t end, Visit&& visit) {
  if (begin >= end) return;
  uint64_t unit = g.block * g.inner, stride = 0;  // elements of a unit
  uint64_t step = 1, repeat = 1;       // scales from one unit to the next, after `repeat` units with the same
  if (g.split_inner && g.inner > 1) {  // each inner position its own scale
    unit = step = g.inner, repeat = g.block, stride = 1;
  } else if (g.inner == 1 && g.block == 1 && g.axis > 1) {  // channels along the last axis
    unit = step = g.axis, stride = 1;
  }
  const uint64_t scales = g.scale_count();
  uint64_t offset = begin % unit, scale = begin / unit / repeat * step % scales;
  uint64_t left = repeat - begin / unit % repeat;
  while (begin < end) {
    const uint64_t count = unit - offset < end - begin ? unit - offset : end - begin;
    visit(Run{begin, count, scale + stride * offset, stride});
    begin += count;
    offset = 0;
    if (--left == 0) {
      left = repeat;
      scale += step;
      if (scale == scales) scale = 0;
    }
  }
}

/// Internal order to the order of scale_shape, `scale_count()` values each. They differ where inner positions have
/// their own scales: internal [outer, groups, middle, last] is [outer, last, middle, groups] once ch_axis and the last
/// dimension have changed places.
void to_scale_shape_order(const Granularity& g, const float* internal, float* ordered);
void from_scale_shape_order(const Granularity& g, const float* ordered, float* internal);

}  // namespace wasmquant
