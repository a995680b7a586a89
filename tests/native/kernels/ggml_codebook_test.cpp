// GGUF's types with codebooks, against ggml's own values and bytes.
#include "kernels/ggml/ggml_codebook.h"

#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "kernels/ggml/ggml_blocks.h"
#include "kernels/ggml_rows.h"

namespace wasmquant::kernels {
namespace {

TEST_CASE("random blocks have the values that ggml gives them") {
  struct Decoded {
    GgmlType type;
    uint32_t hash;  // FNV-1a of to_float's bytes, libggml 0.27
  };
  constexpr Decoded kDecoded[] = {
      {GgmlType::iq2_xxs, 0x0655A6D9u}, {GgmlType::iq2_xs, 0x071CD7C2u}, {GgmlType::iq2_s, 0xDA468601u},
      {GgmlType::iq3_xxs, 0xCF673CDBu}, {GgmlType::iq3_s, 0x10F59A46u},  {GgmlType::iq1_s, 0xB5184004u},
      {GgmlType::iq1_m, 0x0C5B0ED3u},
  };
  constexpr size_t kBlocks = 64;
  for (const Decoded& pinned : kDecoded) {
    const GgmlTypeInfo& info = info_of(pinned.type);
    BellShaped dice(info.file_id);
    std::vector<uint8_t> bytes(kBlocks * info.block_bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(dice.next());
    const size_t top = pinned.type == GgmlType::iq1_m ? 55 : 1;  // of d, which becomes finite
    for (size_t at = top; at < bytes.size(); at += info.block_bytes) bytes[at] &= 0xBF;
    std::vector<float> y(kBlocks * info.block);
    dequantize_blocks(pinned.type, bytes.data(), y.size(), y.data());
    uint32_t hash = 2166136261u;
    for (const float v : y)
      for (uint32_t i = 0; i < 4; ++i) hash = (hash ^ (std::bit_cast<uint32_t>(v) >> (8 * i) & 255)) * 16777619u;
    INFO(std::string(info.name));
    CHECK(hash == pinned.hash);
  }
}

TEST_CASE("thirty-two zeros in a block leave the others where they are") {
  std::vector<float> x = rows_of(Rows::bell, 256);
  for (size_t i = 32; i < 64; ++i) x[i] = 0;
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    if (!has_codebook(info.type) || info.type == GgmlType::iq1_s || info.type == GgmlType::iq1_m) continue;
    std::vector<uint8_t> bytes(info.block_bytes);
    std::vector<float> y(x.size());
    quantize_blocks(info.type, x.data(), 1, x.size(), nullptr, bytes.data());
    dequantize_blocks(info.type, bytes.data(), y.size(), y.data());
    double signal = 0, noise = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      signal += double{x[i]} * x[i];
      noise += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    }
    INFO(std::string(info.name));
    CHECK(noise < 0.2 * signal);
  }
}

TEST_CASE("entries of a codebook ascend and are all different") {
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    if (!has_codebook(info.type)) continue;
    const Codebook book = codebook_of(info.type);
    int64_t before = -1;
    for (uint32_t entry = 0; entry < book.count; ++entry) {
      int64_t number = 0;
      for (uint32_t i = book.length; i-- > 0;) number = number * book.base + book.digits[entry * book.length + i];
      REQUIRE(number > before);
      before = number;
    }
  }
}

}  // namespace
}  // namespace wasmquant::kernels
