// The quantized dtypes and their constexpr facts, all derived from dtypes.def.
// Sources: quantized integer ranges as in torch; bfloat16 and float16 (IEEE 754 binary16); fp8 as in
// "FP8 Formats for Deep Learning" (Micikevicius et al. 2022) and the OCP 8-bit floating point specification.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wasmquant {

enum class Dtype : uint8_t {
#define WASMQUANT_INT(id, ...) id,
#define WASMQUANT_FLOAT(id, ...) id,
#include "numeric/dtypes.def"
};

enum class Specials : uint8_t { none, nan_only, ieee };

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  uint8_t bits;
  bool is_integer;
  bool is_signed;
  // Integers: smallest and largest code. Floats: 0.
  int32_t quant_min;
  int32_t quant_max;
  // Floats only.
  uint8_t exponent_bits;
  uint8_t mantissa_bits;
  int16_t bias;
  Specials specials;
  double max_finite;

  /// bfloat16 and float16 are plain casts: no scale, no observer.
  constexpr bool is_plain_cast() const { return !is_integer && bits == 16; }
  /// Bytes of one unpacked code: 1 for up to 8 bits, 2 for 16.
  constexpr uint32_t code_bytes() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }
};

namespace detail {

constexpr double power_of_two(int e) {
  double v = 1;
  for (; e > 0; --e) v *= 2;
  for (; e < 0; ++e) v /= 2;
  return v;
}

constexpr double max_finite(int exponent_bits, int mantissa_bits, int bias, Specials specials) {
  const int top = (1 << exponent_bits) - 1 - (specials == Specials::ieee ? 1 : 0);
  const int mantissa = (1 << mantissa_bits) - 1 - (specials == Specials::nan_only ? 1 : 0);
  return (1.0 + mantissa * power_of_two(-mantissa_bits)) * power_of_two(top - bias);
}

}  // namespace detail

inline constexpr std::array kDtypes = {
#define WASMQUANT_INT(id, bits, is_signed)                       \
  DtypeInfo{Dtype::id,                                           \
            #id,                                                 \
            bits,                                                \
            true,                                                \
            is_signed,                                           \
            is_signed ? -(1 << (bits - 1)) : 0,                  \
            is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, \
            0,                                                   \
            0,                                                   \
            0,                                                   \
            Specials::none,                                      \
            0.0},
#define WASMQUANT_FLOAT(id, bits, e, m, bias, specials)              \
  DtypeInfo{Dtype::id, #id, bits, false, (bits) == 1 + (e) + (m), 0, \
            0,         e,   m,    bias,  Specials::specials,      detail::max_finite(e, m, bias, Specials::specials)},
#include "numeric/dtypes.def"
};

constexpr const DtypeInfo& info_of(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

constexpr std::optional<Dtype> dtype_named(std::string_view name) {
  for (const DtypeInfo& row : kDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

static_assert(info_of(Dtype::fp8_e4m3).max_finite == 448.0);
static_assert(info_of(Dtype::fp8_e5m2).max_finite == 57344.0);
static_assert(info_of(Dtype::float16).max_finite == 65504.0);

}  // namespace wasmquant
