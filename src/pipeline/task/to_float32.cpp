#include "pipeline/task/to_float32.h"

#include <cstring>

#include "kernels/ggml/ggml_blocks.h"
#include "kernels/kernels.h"
#include "numeric/minifloat.h"

namespace wasmquant {
namespace {

void widen_small(Dtype dtype, const uint8_t* bytes, uint64_t count, float* x) noexcept {
  const FloatFormat format = float_format_of(dtype);
  float values[256];
  for (uint32_t code = 0; code < 1u << format.bits(); ++code) values[code] = static_cast<float>(decode(format, code));
  if (format.bits() == 8) {
    for (uint64_t i = 0; i < count; ++i) x[i] = values[bytes[i]];
    return;
  }
  for (uint64_t i = 0; i < count; i += 2, ++bytes) {
    x[i] = values[*bytes & 15];
    x[i + 1] = values[*bytes >> 4];
  }
}

void narrow_doubles(const uint8_t* bytes, uint64_t count, float* x) noexcept {
  for (uint64_t i = 0; i < count; ++i) {
    double value;  // of a file, at any address
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    x[i] = static_cast<float>(value);
  }
}

}  // namespace

void to_float32(StorageDtype dtype, const uint8_t* bytes, uint64_t count, float* x) noexcept {
  if (const auto small = small_float_of(dtype)) return widen_small(*small, bytes, count, x);
  if (dtype == StorageDtype::F64) return narrow_doubles(bytes, count, x);
  const std::span<const uint16_t> bits(reinterpret_cast<const uint16_t*>(bytes), count);
  if (dtype == StorageDtype::BF16)
    kernels::widen_bf16(bits, x);
  else if (dtype == StorageDtype::F16)
    kernels::widen_f16(bits, x);
  else
    kernels::dequantize_blocks(*ggml_type_of(dtype), bytes, count, x);
}

}  // namespace wasmquant
