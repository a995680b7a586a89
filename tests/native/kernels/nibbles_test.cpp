#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

TEST_CASE("nibble kernels equal their oracles, and unpacking gives the codes back") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    for (bool is_signed : {false, true}) {
      for (uint32_t add : {0u, 8u, 3u}) {
        std::vector<uint8_t> codes(n + offset);
        for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 7 % 16 - (is_signed ? 8 : 0));
        const std::span<const uint8_t> run = std::span<const uint8_t>(codes).subspan(offset);
        const size_t bytes = (n + 1) / 2;
        check_same<uint8_t>(
            bytes, offset, [&](uint8_t* out) { pack_nibbles(run, add, out); },
            [&](uint8_t* out) { reference::pack_nibbles(run, add, out); });
        Output<uint8_t> packed(bytes, offset);
        pack_nibbles(run, add, packed.data());
        const std::span<const uint8_t> packed_run{packed.data(), bytes};
        check_same<uint8_t>(
            n, offset, [&](uint8_t* out) { unpack_nibbles(packed_run, n, add, is_signed, out); },
            [&](uint8_t* out) { std::copy(run.begin(), run.end(), out); });
        check_same<uint8_t>(
            n, offset, [&](uint8_t* out) { unpack_nibbles(packed_run, n, add, is_signed, out); },
            [&](uint8_t* out) { reference::unpack_nibbles(packed_run, n, add, is_signed, out); });
      }
    }
  });
}

TEST_CASE("the first code goes to the low nibble, an odd last one has no partner") {
  const std::array<uint8_t, 3> codes = {1, 0xFE, 7};  // 1, -2, 7
  std::array<uint8_t, 2> bytes;
  pack_nibbles(codes, 0, bytes.data());
  CHECK(bytes == std::array<uint8_t, 2>{0xE1, 0x07});
  pack_nibbles(codes, 8, bytes.data());
  CHECK(bytes == std::array<uint8_t, 2>{0x69, 0x0F});
}

}  // namespace
}  // namespace wasmquant::kernels
