// Four-bit codes, two per byte, the first in the low nibble.
#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

struct PackNibbles {
  template <class Arch>
  void operator()(Arch, std::span<const uint8_t> codes, uint32_t offset, uint8_t* bytes) const noexcept {
    using U8 = simd::U8<Arch>;
    using U16 = simd::U16<Arch>;
    constexpr size_t kBytes = U8::size;
    const U8 add(static_cast<uint8_t>(offset)), low_nibble = simd::constant<Arch>(uint8_t{15});
    const U16 low_byte = simd::constant<Arch>(uint16_t{255});
    const auto pair = [&](const uint8_t* in) {  // 16-bit lanes 0h0l -> 00hl
      const U16 v = xsimd::bitwise_cast<uint16_t>((U8::load_unaligned(in) + add) & low_nibble);
      return (v | (v >> 4)) & low_byte;
    };
    size_t i = 0;
    for (; i + 2 * kBytes <= codes.size(); i += 2 * kBytes)
      simd::narrow_halves<Arch>(pair(codes.data() + i), pair(codes.data() + i + kBytes)).store_unaligned(bytes + i / 2);
    if (i < codes.size()) reference::pack_nibbles(codes.subspan(i), offset, bytes + i / 2);
  }
};

struct UnpackNibbles {
  template <class Arch>
  void operator()(Arch, std::span<const uint8_t> bytes, size_t count, uint32_t offset, bool is_signed,
                  uint8_t* codes) const noexcept {
    using U8 = simd::U8<Arch>;
    constexpr size_t kBytes = U8::size;
    const U8 low_nibble = simd::constant<Arch>(uint8_t{15}), sign(static_cast<uint8_t>(is_signed ? 8 : 0)),
             sub(static_cast<uint8_t>(offset));
    const auto code_of = [&](const U8& nibble) {  // (v ^ 8) - 8 extends the sign of a nibble
      return (((nibble - sub) & low_nibble) ^ sign) - sign;
    };
    size_t i = 0;
    for (; i + 2 * kBytes <= count; i += 2 * kBytes) {
      const U8 v = U8::load_unaligned(bytes.data() + i / 2);
      const U8 low = code_of(v), high = code_of((v >> 4) & low_nibble);
      xsimd::zip_lo(low, high).store_unaligned(codes + i);
      xsimd::zip_hi(low, high).store_unaligned(codes + i + kBytes);
    }
    if (i < count) reference::unpack_nibbles(bytes.subspan(i / 2), count - i, offset, is_signed, codes + i);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void pack_nibbles(std::span<const uint8_t> codes, uint32_t offset, uint8_t* bytes) noexcept {
  run<PackNibbles>(codes, offset, bytes);
}

void unpack_nibbles(std::span<const uint8_t> bytes, size_t count, uint32_t offset, bool is_signed,
                    uint8_t* codes) noexcept {
  run<UnpackNibbles>(bytes, count, offset, is_signed, codes);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
