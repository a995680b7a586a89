// Applies a spec's qscheme, ch_axis and group_size to a shape. AMD Quark's per_group swaps ch_axis with the last
// dimension and cuts the rows of the result into groups; here only the order of the scales changes.
#include "quantize/granularity.h"

#include <algorithm>
#include <string>

namespace wasmquant {
namespace {

std::string text_of(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (const uint64_t length : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(length);
  return text + "]";
}

Result<uint64_t> product(const std::vector<uint64_t>& shape, size_t first, size_t last) {
  uint64_t value = 1;
  for (size_t i = first; i < last; ++i)
    if (__builtin_mul_overflow(value, shape[i], &value))
      return Error{ErrorCode::shape_mismatch, "", "shape " + text_of(shape) + " has more than 2^64 elements"};
  return value;
}

Result<size_t> resolve_axis(const std::vector<uint64_t>& shape, int64_t ch_axis) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = ch_axis < 0 ? ch_axis + rank : ch_axis;
  if (axis >= 0 && axis < rank) return static_cast<size_t>(axis);
  const std::string allowed = rank == 0
                                  ? "a scalar has no axis; use per_tensor"
                                  : "it must be from " + std::to_string(-rank) + " to " + std::to_string(rank - 1);
  return Error{ErrorCode::shape_mismatch, "",
               "ch_axis " + std::to_string(ch_axis) + " is not an axis of shape " + text_of(shape) + "; " + allowed};
}

// "128, 32 and 4096": the usual sizes that divide the axis, or the largest that do where none of those does, and the
// length of the axis.
std::string sizes_that_fit(uint64_t length) {
  constexpr uint64_t kSmallest = 16, kLargest = 256;
  constexpr size_t kMost = 6;
  std::vector<uint64_t> sizes;
  for (const uint64_t size : {128u, 64u, 32u, 16u})
    if (size < length && length % size == 0) sizes.push_back(size);
  if (sizes.empty())
    for (uint64_t size = std::min(kLargest, length - 1); size >= kSmallest && sizes.size() < kMost; --size)
      if (length % size == 0) sizes.push_back(size);
  sizes.push_back(length);
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == sizes.size() ? " and " : ", ") + std::to_string(sizes[i]);
  return text;
}

// Whether a short last group is padded.
bool pads(const QuantizationSpec& spec) {
  return !info_of(spec.dtype).is_integer || spec.scale_format == ScaleFormat::e8m0 || spec.grid.pads_groups;
}

Result<uint64_t> block_of_groups(const std::vector<uint64_t>& shape, size_t axis, const QuantizationSpec& spec) {
  const int64_t group_size = spec.group_size != 0 ? spec.group_size : info_of(spec.dtype).default_block;
  const uint64_t length = shape[axis];
  const std::string place = "axis " + std::to_string(axis) + " of shape " + text_of(shape);
  if (length == 0) return Error{ErrorCode::shape_mismatch, "", place + " is empty and has no groups; use per_tensor"};
  if (group_size == -1) return length;
  if (group_size > 0 && (pads(spec) || length % static_cast<uint64_t>(group_size) == 0))
    return static_cast<uint64_t>(group_size);
  const std::string problem = group_size > 0 ? " does not divide " : " is not a size for ";
  return Error{ErrorCode::group_size_invalid, "",
               "group_size " + std::to_string(group_size) + problem + place +
                   "; sizes that fit: " + sizes_that_fit(length) + " (-1 is the whole axis)"};
}

// Copies [outer, groups, middle, last] to [outer, last, middle, groups], or back.
template <bool Forward>
void reorder_scales(const Granularity& g, const float* in, float* out) {
  const uint64_t groups = g.blocks();
  if (!g.split_inner || g.inner <= 1) {
    for (uint64_t i = 0; i < g.scale_count(); ++i) out[i] = in[i];
    return;
  }
  const uint64_t middle = g.inner / g.last;
  uint64_t internal = 0;
  for (uint64_t o = 0; o < g.outer; ++o)
    for (uint64_t k = 0; k < groups; ++k)
      for (uint64_t m = 0; m < middle; ++m)
        for (uint64_t l = 0; l < g.last; ++l, ++internal) {
          const uint64_t ordered = ((o * g.last + l) * middle + m) * groups + k;
          if constexpr (Forward)
            out[ordered] = in[internal];
          else
            out[internal] = in[ordered];
        }
}

Result<Granularity> granularity_of_blocks(const std::vector<uint64_t>& shape, const QuantizationSpec& spec) {
  if (spec.block_rows == 0 || spec.block_columns == 0)
    return Error{ErrorCode::spec_invalid, "", "per_block needs a block_size of two positive numbers, rows and columns"};
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0)
    return Error{ErrorCode::shape_mismatch, "",
                 "per_block needs a tensor of two dimensions that are not empty, found shape " + text_of(shape)};
  TRY_VOID(product(shape, 0, 2));
  Granularity g;
  g.outer = shape[0];
  g.axis = shape[1];
  g.block = spec.block_columns;
  g.outer_block = spec.block_rows;
  g.split_outer = true;
  g.scale_shape = {(g.outer - 1) / g.outer_block + 1, g.blocks()};
  return g;
}

}  // namespace

Granularity one_scale_per_run(uint64_t count, uint64_t length) noexcept {
  Granularity g;
  g.outer = count;
  g.axis = g.block = length;
  g.split_outer = true;
  return g;
}

Result<Granularity> granularity_of(const std::vector<uint64_t>& shape, const QuantizationSpec& spec) {
  const bool is_cast = info_of(spec.dtype).is_plain_cast();
  if (info_of(spec.dtype).is_block() && spec.qscheme != QScheme::per_group)
    return Error{ErrorCode::spec_invalid, "",
                 std::string(info_of(spec.dtype).name) + " is made of blocks along one axis; use per_group"};
  if (spec.qscheme == QScheme::per_block && !is_cast) return granularity_of_blocks(shape, spec);
  Granularity g;
  if (spec.qscheme == QScheme::per_tensor || is_cast) {
    TRY(elements, product(shape, 0, shape.size()));
    g.inner = elements;
    return g;
  }
  TRY(axis, resolve_axis(shape, spec.ch_axis));
  TRY(outer, product(shape, 0, axis));
  TRY(inner, product(shape, axis + 1, shape.size()));
  TRY_VOID(product(shape, 0, shape.size()));
  g.outer = outer;
  g.axis = shape[axis];
  g.inner = inner;
  if (spec.qscheme == QScheme::per_channel) {
    g.scale_shape = {g.axis};
    return g;
  }
  TRY(block, block_of_groups(shape, axis, spec));
  g.block = block;
  g.split_outer = g.split_inner = true;
  g.last = axis + 1 < shape.size() ? shape.back() : 1;
  g.scale_shape = {g.outer * g.inner, g.blocks()};
  return g;
}

void to_scale_shape_order(const Granularity& g, const float* internal, float* ordered) {
  reorder_scales<true>(g, internal, ordered);
}

void from_scale_shape_order(const Granularity& g, const float* ordered, float* internal) {
  reorder_scales<false>(g, ordered, internal);
}

}  // namespace wasmquant
