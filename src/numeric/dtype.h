// The quantized dtypes and their constexpr facts, all derived from dtypes.def.
// Sources: quantized integer ranges as in torch; bfloat16 and float16 (IEEE 754 binary16); fp8 as in
// "FP8 Formats for Deep Learning" (Micikevicius et al. 2022) and the OCP 8-bit floating point specification; fp4 and
// fp6 as in the OCP Microscaling Formats specification 1.0; FNUZ as in "8-bit Numerical Formats for Deep Neural
// Networks" (Noune et al. 2022); fp8_e5m3, mx6, mx9 and bfp16 as AMD Quark computes them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wasmquant {

/// One per row of dtypes.def.
enum class Dtype : uint8_t {
#define WASMQUANT_INT(id, ...) id,
#define WASMQUANT_FLOAT(id, ...) id,
#define WASMQUANT_MINIFLOAT(id) id,
#define WASMQUANT_BLOCK(id, ...) id,
#include "numeric/dtypes.def"
};

/// Special values and zeros (dtypes.def).
enum class Specials : uint8_t { none, nan_only, ieee, fnuz };
enum class Zeros : uint8_t { one, two };
/// integer: scale and zero point · floating: scale, or none for plain casts · block: a shared exponent per block
enum class DtypeKind : uint8_t { integer, floating, block };

/// Bytes of one unpacked code of `bits` bits.
constexpr uint32_t code_bytes_of(uint32_t bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }

/// The facts of one dtype.
struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  DtypeKind kind;
  uint8_t bits;  // per code; block dtypes: without the shared bits; minifloat: 0, given by the spec
  bool is_integer;
  bool is_signed;
  // Integers: smallest and largest code. Others: 0.
  int64_t quant_min;
  int64_t quant_max;
  // Floats only.
  uint8_t exponent_bits;
  uint8_t mantissa_bits;
  uint8_t bias;
  Specials specials;
  Zeros zeros;
  // Block dtypes only.
  uint8_t default_block;
  bool pair_shift;

  constexpr bool is_block() const { return kind == DtypeKind::block; }
  /// bfloat16 and float16 are plain casts: no scale, no observer.
  constexpr bool is_plain_cast() const { return kind == DtypeKind::floating && bits == 16; }
  /// Bytes of one unpacked code.
  constexpr uint32_t code_bytes() const { return code_bytes_of(bits); }
};

inline constexpr std::array kDtypes = {
#define WASMQUANT_INT(id, bits, is_signed)                                           \
  DtypeInfo{Dtype::id,                                                               \
            #id,                                                                     \
            DtypeKind::integer,                                                      \
            bits,                                                                    \
            true,                                                                    \
            is_signed,                                                               \
            is_signed ? -(int64_t{1} << (bits - 1)) : 0,                             \
            is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << (bits)) - 1, \
            0,                                                                       \
            0,                                                                       \
            0,                                                                       \
            Specials::none,                                                          \
            Zeros::one,                                                              \
            0,                                                                       \
            false},
#define WASMQUANT_FLOAT(id, bits, e, m, bias, specials, zeros) \
  DtypeInfo{Dtype::id,                                         \
            #id,                                               \
            DtypeKind::floating,                               \
            bits,                                              \
            false,                                             \
            (bits) == 1 + (e) + (m),                           \
            0,                                                 \
            0,                                                 \
            e,                                                 \
            m,                                                 \
            bias,                                              \
            Specials::specials,                                \
            Zeros::zeros,                                      \
            0,                                                 \
            false},
#define WASMQUANT_MINIFLOAT(id) \
  DtypeInfo{Dtype::id, #id, DtypeKind::floating, 0, false, true, 0, 0, 0, 0, 0, Specials::none, Zeros::two, 0, false},
#define WASMQUANT_BLOCK(id, bits, length, shift)                                 \
  DtypeInfo{Dtype::id, #id, DtypeKind::block, bits,       false,  true, 0, 0, 0, \
            0,         0,   Specials::none,   Zeros::one, length, shift},
#include "numeric/dtypes.def"
};

constexpr const DtypeInfo& info_of(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

constexpr std::optional<Dtype> dtype_named(std::string_view name) {
  for (const DtypeInfo& row : kDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace wasmquant
