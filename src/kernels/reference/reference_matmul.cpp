// Oracle of matmul.cpp.
#include <algorithm>

#include "kernels/reference/reference.h"

namespace wasmquant::kernels::reference {

void matmul(const Factor& a, const Factor& b, size_t depth, size_t rows, size_t columns, Update update, Region region,
            float* c, size_t c_stride) noexcept {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = region == Region::upper ? i : 0; j < columns; ++j) {
      float& out = c[i * c_stride + j];
      if (depth == 0 && update == Update::set) out = 0;
      for (size_t begin = 0; begin < depth; begin += kProductDepth) {
        float sum = 0;
        for (size_t p = begin; p < std::min(depth, begin + kProductDepth); ++p)
          sum = sum + a.data[i * a.step + p * a.depth_step] * b.data[j * b.step + p * b.depth_step];
        out = update == Update::subtract ? out - sum : update == Update::set && begin == 0 ? sum : out + sum;
      }
    }
}

}  // namespace wasmquant::kernels::reference
