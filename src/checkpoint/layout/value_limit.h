// How large a weight may be before what is stored of it means infinity, or a scale can follow it no further.
//   values        the largest finite value of their dtype; for codes that of their scales' dtype where it has 16 bits,
//                 because readers multiply in it
//   scales        float16 ends at 65504, e5m3 at 114688; float32, bfloat16 and e8m0 reach further than float32 weights
#pragma once
#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

struct ValueLimit {
  StorageDtype dtype = StorageDtype::F32;  // F32, F16 or BF16: what values are read back in
  float largest = 0;  // finite value of `dtype`, or of codes with shared exponents; of weights in GGUF blocks
  // With larger scales the outermost codes are beyond `largest`; infinity where there are none, or a second scale.
  float largest_scale = 0;
  float clamped_scale = 0;  // scales of this size were clamped by their type; infinity where none can be
  float step = 0;           // between the outermost two codes, in scales

  /// Whether y, a float32 value, is NaN, infinite or rounds to infinity in `dtype`.
  bool is_beyond(float y) const noexcept;
  /// The same, or the scale was clamped and x lies more than a step away from y.
  bool is_lost(float x, float y, float scale) const noexcept;
  /// Whether scales have to be looked at. In float32 values say it all.
  bool depends_on_scales() const noexcept;
  /// Whether codes of one of the scales may be lost; with only finite values in float32.
  bool may_lose(std::span<const QParams> qparams) const noexcept;
};

/// Layouts of every kind; of casts, block dtypes and GGUF types only `dtype` and `largest` mean something.
ValueLimit value_limit_of(const WeightLayout& layout) noexcept;

/// "float16", for messages.
std::string_view float_name_of(StorageDtype dtype) noexcept;

}  // namespace wasmquant
