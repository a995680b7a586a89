// Blocks of integers that share one exponent: AMD Quark's mx6, mx9 and bfp16.
//   value = code * 2^(E - shift - fraction_bits),  E = byte - 127
//   mx6, mx9   E = exponent field of the block's largest magnitude; a pair of neighbours has shift 1 when both are
//              below 2^E; codes are clamped to +-(2^(code_bits-1) - 1). fraction_bits = code_bits - 2.
//              This is the corrected rule: as first shipped, shifted codes reach 2^(code_bits-1), which code_bits bits
//              cannot store. Subnormal elements count as zero.
//   bfp16      E = floor(log2(largest magnitude)), one more when a code would become 128; codes -128..127, no shifts,
//              fraction_bits = 6. A block of zeros has the step 2^-23. Blocks whose largest magnitude is below 2^-126
//              use E = -126.
#pragma once
#include <cstdint>

#include "numeric/dtype.h"

namespace wasmquant {

/// The parameters of a block format.
struct BlockFloatFormat {
  uint32_t block;      // elements that share an exponent; even
  uint32_t code_bits;  // of one element, sign included
  bool pair_shift;

  constexpr int fraction_bits() const { return static_cast<int>(code_bits) - 2; }
  constexpr int code_limit() const { return (1 << (code_bits - 1)) - 1; }
};

inline constexpr int kBlockExponentBias = 127;
/// E of a bfp16 block of zeros: step 2^(-17 - 6) = 2^-23, the smallest scale of all observers.
inline constexpr int kZeroBlockExponent = -17;

/// For block dtypes. `group_size` 0 means the dtype's default block.
constexpr BlockFloatFormat block_float_of(Dtype dtype, uint32_t group_size = 0) {
  const DtypeInfo& info = info_of(dtype);
  return {group_size != 0 ? group_size : info.default_block, info.bits, info.pair_shift};
}

}  // namespace wasmquant
