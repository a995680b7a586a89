// The limit beyond which a stored weight becomes infinite, or its scale saturates.
//   values        the largest finite value of their dtype; for codes with 16-bit scales that of the scales' dtype,
// because
//                 readers multiply in it
//   scales        float16 ends at 65504, e5m3 at 114688; float32, bfloat16 and e8m0 exceed float32 weights
#pragma once
#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// The limits of one layout.
struct ValueLimit {
  StorageDtype dtype = StorageDtype::F32;  // F32, F16 or BF16: what values are read back in
  float largest = 0;  // finite value of `dtype`, or of codes with shared exponents; of weights in GGUF blocks
  // With larger scales the outermost codes exceed `largest`; infinity if that cannot happen or there is a second scale.
  float largest_scale = 0;
  float clamped_scale = 0;  // scales of this size were clamped by their type; infinity if none can be
  float step = 0;           // between the outermost two codes, in scales

  /// Whether y, a float32 value, is NaN, infinite or rounds to infinity in `dtype`.
  bool is_beyond(float y) const noexcept;
  /// The same, or the scale was clamped and x and y differ by more than a step.
  bool is_lost(float x, float y, float scale) const noexcept;
  /// Whether scales must be checked; in float32 the values suffice.
  bool depends_on_scales() const noexcept;
  /// Whether codes of one of the scales may overflow; in float32 only finite values can.
  bool may_lose(std::span<const QParams> qparams) const noexcept;
};

/// For layouts of every kind; casts, block dtypes and GGUF types set only `dtype` and `largest`.
ValueLimit value_limit_of(const WeightLayout& layout) noexcept;

/// "float16", for messages.
std::string_view float_name_of(StorageDtype dtype) noexcept;

}  // namespace wasmquant
