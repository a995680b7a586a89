// Two 4-bit codes per byte: code 2i in bits 0..3 of byte i, code 2i+1 in bits 4..7 (fp4 of AMD Quark, ONNX INT4/UINT4,
// compressed-tensors nvfp4).
#include <cassert>

#include "packing/octet.h"
#include "packing/packing.h"

namespace wasmquant::packing {

void pack_nibbles(std::span<const uint8_t> codes, uint8_t* bytes) noexcept {
  pack_run<4>(codes.data(), codes.size(), 0, bytes);
}

void unpack_nibbles(std::span<const uint8_t> bytes, uint64_t count, bool is_signed, uint8_t* codes) noexcept {
  assert(bytes.size() >= bit_stream_bytes(count, 4));
  const auto unpack = is_signed ? unpack_run<4, true> : unpack_run<4, false>;
  unpack(bytes.data(), static_cast<size_t>(count), 0, codes);
}

}  // namespace wasmquant::packing
