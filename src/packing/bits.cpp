// Little-endian bit stream: code i in bits i*bits .. of the stream, bit 0 = lowest bit of byte 0. For widths that do
// not fill bytes evenly, codes straddle them: int3 puts eight codes in three bytes (AMD Quark's int3 layout).
#include <cassert>

#include "packing/octet.h"
#include "packing/packing.h"

namespace wasmquant::packing {
namespace {

using Run = void (*)(const uint8_t*, size_t, uint32_t, uint8_t*) noexcept;

// [width - 1], and for unpacking [width - 1][is_signed].
constexpr Run kPack[8] = {pack_run<1>, pack_run<2>, pack_run<3>, pack_run<4>,
                          pack_run<5>, pack_run<6>, pack_run<7>, pack_run<8>};
constexpr Run kUnpack[8][2] = {
    {unpack_run<1, false>, unpack_run<1, true>}, {unpack_run<2, false>, unpack_run<2, true>},
    {unpack_run<3, false>, unpack_run<3, true>}, {unpack_run<4, false>, unpack_run<4, true>},
    {unpack_run<5, false>, unpack_run<5, true>}, {unpack_run<6, false>, unpack_run<6, true>},
    {unpack_run<7, false>, unpack_run<7, true>}, {unpack_run<8, false>, unpack_run<8, true>}};

}  // namespace

void pack_bits(std::span<const uint8_t> codes, uint32_t bits, uint8_t* bytes) noexcept {
  assert(bits >= 1 && bits <= 8);
  kPack[bits - 1](codes.data(), codes.size(), 0, bytes);
}

void unpack_bits(std::span<const uint8_t> bytes, uint64_t count, uint32_t bits, bool is_signed,
                 uint8_t* codes) noexcept {
  assert(bits >= 1 && bits <= 8 && bytes.size() >= bit_stream_bytes(count, bits));
  kUnpack[bits - 1][is_signed](bytes.data(), static_cast<size_t>(count), 0, codes);
}

}  // namespace wasmquant::packing
