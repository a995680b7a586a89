#include "model/linear_input.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/kernels.h"
#include "numeric/half.h"

namespace wasmquant::model {
namespace {

constexpr float kCodes = 127;  // codes are -127..127

/// A grid for each run of `run` elements. `scale_of` is the stored scale of a largest magnitude.
template <class ScaleOf>
void quantize_runs(std::span<float> x, size_t run, ScaleOf scale_of) noexcept {
  std::vector<float> largest((x.size() + run - 1) / run);
  if (!kernels::reduce_absmax_runs(x, run, largest.data())) return;
  std::vector<kernels::Affine> grids;
  for (const float magnitude : largest)
    grids.push_back({scale_of(magnitude), magnitude > 0 ? kCodes / magnitude : 0, 0, -kCodes, kCodes});
  kernels::fake_quantize_int(x, grids.data(), run, RoundMethod::half_even, x.data());
}

float bfloat16_of(float x) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

}  // namespace

void quantize_inputs(InputPrecision precision, std::span<float> x, size_t columns) noexcept {
  switch (precision) {
    case InputPrecision::float32:
      return;
    case InputPrecision::int8_per_token:
      for (size_t at = 0; at < x.size(); at += columns) {
        const std::span<float> row = x.subspan(at, columns);
        const kernels::AbsMax largest = kernels::reduce_absmax(row);
        if (!largest.all_finite) continue;  // what is not finite is told by its results
        const float scale = std::max(largest.value / kCodes, 0x1p-126f);
        const kernels::Affine grid{scale, 1.0f / scale, 0, -kCodes, kCodes};
        kernels::fake_quantize_int(row, &grid, columns, RoundMethod::half_even, row.data());
      }
      return;
    case InputPrecision::float16:
      for (float& value : x) value = from_half(half_of(value));
      return;
    case InputPrecision::bfloat16:
      for (float& value : x) value = bfloat16_of(value);
      return;
    case InputPrecision::q8_0:
      return quantize_runs(x, 32, [](float magnitude) { return from_half(half_of(magnitude / kCodes)); });
    case InputPrecision::q8_k:
      return quantize_runs(x, 256, [](float magnitude) { return magnitude / kCodes; });
  }
}

InputPrecision llama_cpp_precision(StorageDtype weight) noexcept {
  switch (weight) {
    case StorageDtype::F16:
      return InputPrecision::float16;
    case StorageDtype::BF16:
      return InputPrecision::bfloat16;
    default:
      if (!info_of(weight).is_ggml()) return InputPrecision::float32;
      return info_of(weight).block == 256 ? InputPrecision::q8_k : InputPrecision::q8_0;
  }
}

}  // namespace wasmquant::model
