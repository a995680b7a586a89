// Blocks with a shared exponent. Formats and formulas: numeric/block_float.h.
// Inputs are scaled by powers of two only, so float32 arithmetic is exact except for the rounding of each code:
// x * 2^-E is in (-2, 2) and only then multiplied by 2^fraction_bits, which cannot overflow.
#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

/// mx6 and mx9: the whole blocks of a row, if blocks are whole steps. Returns the number of elements done.
struct QuantizePairShift {
  template <class Arch>
  size_t operator()(Arch, std::span<const float> row, const BlockFloatFormat& format, uint8_t* exponents,
                    uint8_t* shifts, int8_t* codes) const noexcept {
    if (format.block % simd::step<Arch> != 0) return 0;
    const Rule<Arch> rule(format);
    size_t begin = 0;
    for (; begin + format.block <= row.size(); begin += format.block) {
      const float* x = row.data() + begin;
      I<Arch> largest(0);
      for (size_t i = 0; i < format.block; i += simd::lanes<Arch>)
        largest = simd::max_int<Arch>(largest, rule.magnitude(x + i));
      const auto exponent = static_cast<uint32_t>(simd::largest_lane<Arch>(largest)) >> 23;
      exponents[begin / format.block] = static_cast<uint8_t>(exponent);
      // 2^-E; all elements of a block with exponent field 0 become zero.
      const F<Arch> inverse(
          exponent == 0 ? 0.0f : static_cast<float>(power_of_two(kBlockExponentBias - static_cast<int>(exponent))));
      const I<Arch> unshifted(static_cast<int32_t>(exponent << 23));
      for (size_t i = 0; i < format.block; i += simd::step<Arch>) {
        std::array<U<Arch>, 4> code, shift;
        for (size_t k = 0; k < 4; ++k) rule(x + i + k * simd::lanes<Arch>, inverse, unshifted, code[k], shift[k]);
        simd::narrow_bytes<Arch>(code).store_unaligned(reinterpret_cast<uint8_t*>(codes) + begin + i);
        std::array<uint8_t, simd::step<Arch>> each;
        simd::narrow_bytes<Arch>(shift).store_unaligned(each.data());
        for (size_t p = 0; p < each.size() / 2; ++p) shifts[(begin + i) / 2 + p] = each[2 * p];
      }
    }
    return begin;
  }

 private:
  template <class Arch>
  using F = simd::F<Arch>;
  template <class Arch>
  using I = simd::I<Arch>;
  template <class Arch>
  using U = simd::U<Arch>;

  template <class Arch>
  struct Rule {
    explicit Rule(const BlockFloatFormat& format) noexcept
        : low(-static_cast<float>(format.code_limit())),
          high(static_cast<float>(format.code_limit())),
          one(static_cast<float>(1 << format.fraction_bits())),
          two(static_cast<float>(2 << format.fraction_bits())) {}

    /// Bits of |x| for normal numbers, zero for the rest.
    XSIMD_INLINE I<Arch> magnitude(const float* x) const noexcept {
      const I<Arch> bits = simd::as_int<Arch>(simd::load<Arch>(x)) & no_sign;
      const U<Arch> kept = simd::when<Arch>(bits >= first_normal, xsimd::bitwise_cast<uint32_t>(bits));
      return xsimd::bitwise_cast<int32_t>(simd::when<Arch>(bits < first_special, kept));
    }
    XSIMD_INLINE void operator()(const float* x, const F<Arch>& inverse, const I<Arch>& unshifted, U<Arch>& code,
                                 U<Arch>& shift) const noexcept {
      const I<Arch> bits = magnitude(x);
      const U<Arch> sign = simd::as_uint<Arch>(simd::load<Arch>(x)) & xsimd::bitwise_cast<uint32_t>(~no_sign);
      const I<Arch> neighbour = simd::as_int<Arch>(simd::swap_pairs<Arch>(xsimd::bitwise_cast<float>(bits)));
      const auto is_shifted = simd::max_int<Arch>(bits, neighbour) < unshifted;
      const F<Arch> units =
          simd::as_float<Arch>(simd::select<Arch>(is_shifted, simd::as_uint<Arch>(two), simd::as_uint<Arch>(one)));
      const F<Arch> kept = simd::as_float<Arch>(xsimd::bitwise_cast<uint32_t>(bits) | sign);
      code = nearest.bits(simd::clamp<Arch>(kept * inverse * units, low, high)) & low_byte;
      shift = simd::when<Arch>(is_shifted, lowest_bit);
    }

    F<Arch> low, high, one, two;
    I<Arch> no_sign = simd::constant<Arch>(int32_t{0x7FFFFFFF}), first_normal = simd::constant<Arch>(0x00800000),
            first_special = simd::constant<Arch>(0x7F800000);
    U<Arch> low_byte = simd::constant<Arch>(0xFFu), lowest_bit = simd::constant<Arch>(1u);
    simd::NearestInt<Arch> nearest;
  };
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void quantize_block_float(std::span<const float> row, const BlockFloatFormat& format, uint8_t* exponents,
                          uint8_t* shifts, int8_t* codes) noexcept {
  // The oracle handles bfp16 (blocks of eight), a short last block, and blocks that are not whole steps.
  const size_t done = format.pair_shift ? run<QuantizePairShift>(row, format, exponents, shifts, codes) : 0;
  if (done < row.size())
    reference::quantize_block_float(row.subspan(done), format, exponents + done / format.block,
                                    shifts == nullptr ? nullptr : shifts + done / 2, codes + done);
}

void dequantize_block_float(std::span<const int8_t> codes, const BlockFloatFormat& format, const uint8_t* exponents,
                            const uint8_t* shifts, float* y) noexcept {
  reference::dequantize_block_float(codes, format, exponents, shifts, y);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
