// GGUF blocks: any bits as weights and importance give the same blocks by the kernels and by the oracles, and any bytes
// dequantize. Input: 1. type  2. flags (bit 0: importance, bit 1: first rows' exponents drawn together)  3. bytes.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/ggml/ggml_blocks.h"
#include "kernels/ggml/ggml_codebook_search.h"

using namespace wasmquant;

// What is made once is no part of an input's time; instrumented, it takes seconds.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  for (const GgmlTypeInfo& info : kGgmlTypes)
    if (kernels::has_codebook(info.type)) kernels::search_of(info.type);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const GgmlTypeInfo& info = kGgmlTypes[data[0] % kGgmlTypes.size()];
  const bool has_importance = data[1] & 1, is_tame = data[1] & 2;
  data += 2;
  size -= 2;

  if (info.can_dequantize()) {
    const size_t blocks = size / info.block_bytes;
    std::vector<float> y(blocks * info.block);
    kernels::dequantize_blocks(info.type, data, y.size(), y.data());
  }
  if (!info.can_quantize() || size == 0) return 0;

  // The bytes over and over, so that short inputs fill rows; tame: magnitudes of 2^-8 to 2^7.
  std::vector<float> x(size_t{info.block} * 9);
  for (size_t i = 0; i < x.size(); ++i) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 4; ++k) bits = bits << 8 | data[(4 * i + k) % size];
    x[i] = std::bit_cast<float>(is_tame ? (bits & 0x87FFFFFF) + 0x3B800000 : bits);
  }
  const size_t columns = info.block * size_t{3};
  std::vector<float> importance(columns);
  for (size_t i = 0; i < columns; ++i) importance[i] = std::fabs(x[columns + i]);
  const float* weights = has_importance ? importance.data() : nullptr;
  std::vector<uint8_t> fast(info.bytes_of(x.size())), slow(fast.size());
  kernels::quantize_blocks(info.type, x.data(), 3, columns, weights, fast.data());
  kernels::reference::quantize_blocks(info.type, x.data(), 3, columns, weights, slow.data());
  if (fast != slow) std::abort();
  std::vector<float> y(x.size());
  kernels::dequantize_blocks(info.type, fast.data(), y.size(), y.data());
  return 0;
}
