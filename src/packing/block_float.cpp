#include <algorithm>
#include <cstring>

#include "packing/packing.h"

namespace wasmquant::packing {
namespace {

size_t shift_bytes(const BlockFloatFormat& format) { return format.pair_shift ? (format.block / 2 + 7) / 8 : 0; }

}  // namespace

void pack_block_row(std::span<const int8_t> codes, const BlockFloatFormat& format, const uint8_t* exponents,
                    const uint8_t* shifts, uint8_t* bytes) noexcept {
  const auto size = static_cast<size_t>(block_bytes(format));
  for (size_t begin = 0; begin < codes.size(); begin += format.block, bytes += size) {
    const size_t count = std::min<size_t>(format.block, codes.size() - begin);
    std::memset(bytes, 0, size);
    bytes[0] = *exponents++;
    if (format.pair_shift)
      for (size_t pair = 0; pair < (count + 1) / 2; ++pair)
        bytes[1 + pair / 8] |= static_cast<uint8_t>((shifts[begin / 2 + pair] & 1) << pair % 8);
    pack_bits({reinterpret_cast<const uint8_t*>(codes.data()) + begin, count}, format.code_bits,
              bytes + 1 + shift_bytes(format));
  }
}

void unpack_block_row(const uint8_t* bytes, uint64_t columns, const BlockFloatFormat& format, uint8_t* exponents,
                      uint8_t* shifts, int8_t* codes) noexcept {
  const auto size = static_cast<size_t>(block_bytes(format)), length = static_cast<size_t>(columns);
  for (size_t begin = 0; begin < length; begin += format.block, bytes += size) {
    const size_t count = std::min<size_t>(format.block, length - begin);
    *exponents++ = bytes[0];
    if (format.pair_shift)
      for (size_t pair = 0; pair < (count + 1) / 2; ++pair)
        shifts[begin / 2 + pair] = bytes[1 + pair / 8] >> pair % 8 & 1;
    const uint8_t* stream = bytes + 1 + shift_bytes(format);
    unpack_bits({stream, static_cast<size_t>(bit_stream_bytes(count, format.code_bits))}, count, format.code_bits, true,
                reinterpret_cast<uint8_t*>(codes) + begin);
  }
}

}  // namespace wasmquant::packing
