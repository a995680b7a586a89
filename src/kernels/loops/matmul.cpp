// Blocked product of packed strips: kTileRows rows of a, two registers of columns of b, depth outermost, zero padded;
// the innermost loop reads both in order.
#include "kernels/matmul.h"

#include <algorithm>
#include <array>

#include "kernels/dispatch.h"

namespace wasmquant::kernels {
namespace {

constexpr size_t kTileRows = 4, kTileRegisters = 2;  // eight sums and their operands fit sixteen registers
constexpr size_t kWidestTile = 16;                   // columns, of AVX2
// Packed: 16 KiB of a, which stay in the first-level cache, and 512 KiB of b in the second.
constexpr size_t kBlockRows = 32, kBlockColumns = 1024;

constexpr ptrdiff_t kNoDiagonal = -static_cast<ptrdiff_t>(kTileRows);

constexpr size_t round_up(size_t n, size_t step) noexcept { return (n + step - 1) / step * step; }

}  // namespace

struct Matmul {
  template <class Arch>
  void operator()(Arch, const Factor& a, const Factor& b, size_t depth, size_t rows, size_t columns, Update update,
                  Region region, float* c, size_t c_stride, float* workspace) const noexcept {
    constexpr size_t kColumns = kTileRegisters * simd::lanes<Arch>;
    const bool upper = region == Region::upper;
    for (size_t p0 = 0; p0 < depth; p0 += kProductDepth) {
      const size_t deep = std::min(kProductDepth, depth - p0);
      const Update how = p0 > 0 && update == Update::set ? Update::add : update;
      for (size_t j0 = 0; j0 < columns; j0 += kBlockColumns) {
        const size_t j1 = std::min(j0 + kBlockColumns, columns);
        float* const packed_b = workspace;
        float* const packed_a = packed_b + deep * round_up(j1 - j0, kColumns);
        pack<kColumns>(b, j0, j1 - j0, p0, deep, packed_b);
        const size_t i_end = upper ? std::min(rows, j1) : rows;
        for (size_t i0 = 0; i0 < i_end; i0 += kBlockRows) {
          const size_t i1 = std::min(i0 + kBlockRows, rows);
          pack<kTileRows>(a, i0, i1 - i0, p0, deep, packed_a);
          for (size_t j = j0; j < j1; j += kColumns) {
            const size_t width = std::min(kColumns, j1 - j);
            for (size_t i = i0; i < (upper ? std::min(i1, j + width) : i1); i += kTileRows) {
              const size_t height = std::min(kTileRows, i1 - i);
              float* const out = c + i * c_stride + j;
              const float* const from_a = packed_a + (i - i0) * deep;
              const float* const from_b = packed_b + (j - j0) * deep;
              if (width == kColumns && height == kTileRows && (!upper || i + kTileRows <= j + 1))
                whole_tile<Arch>(from_a, from_b, deep, how, out, c_stride);
              else
                edge_tile<Arch>(from_a, from_b, deep, how, out, c_stride, height, width,
                                upper ? static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(j) : kNoDiagonal);
            }
          }
        }
      }
    }
  }

 private:
  // Rows [begin, begin + count) of m as strips of Width rows, each [depth][Width].
  template <size_t Width>
  static void pack(const Factor& m, size_t begin, size_t count, size_t p0, size_t depth, float* out) noexcept {
    for (size_t at = 0; at < count; at += Width) {
      const float* from = m.data + (begin + at) * m.step + p0 * m.depth_step;
      const size_t width = std::min(Width, count - at);
      if (width == Width) {
        for (size_t p = 0; p < depth; ++p, from += m.depth_step, out += Width)
          for (size_t i = 0; i < Width; ++i) out[i] = from[i * m.step];
      } else {
        std::fill_n(out, depth * Width, 0.0f);
        for (size_t i = 0; i < width; ++i)
          for (size_t p = 0; p < depth; ++p) out[p * Width + i] = from[i * m.step + p * m.depth_step];
        out += depth * Width;
      }
    }
  }

  // At the edges of c and on the diagonal, uses a separate tile: columns from `diagonal` + row on.
  template <class Arch>
  static void edge_tile(const float* a, const float* b, size_t depth, Update how, float* c, size_t stride,
                        size_t height, size_t width, ptrdiff_t diagonal) noexcept {
    constexpr size_t kColumns = kTileRegisters * simd::lanes<Arch>;
    std::array<float, kTileRows * kColumns> tile{};
    const auto each_row = [&](auto&& copy) {
      for (size_t row = 0; row < height; ++row) {
        const auto first = static_cast<size_t>(std::max<ptrdiff_t>(diagonal + static_cast<ptrdiff_t>(row), 0));
        if (first < width) copy(c + row * stride + first, &tile[row * kColumns + first], width - first);
      }
    };
    if (how != Update::set)
      each_row([](float* in_c, float* in_tile, size_t count) { std::copy_n(in_c, count, in_tile); });
    whole_tile<Arch>(a, b, depth, how, tile.data(), kColumns);
    each_row([](float* in_c, float* in_tile, size_t count) { std::copy_n(in_tile, count, in_c); });
  }

  // Not inlined: it is called in two places, and runs long.
  template <class Arch>
  [[gnu::noinline]] static void whole_tile(const float* a, const float* b, size_t depth, Update how, float* c,
                                           size_t stride) noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    std::array<std::array<F, kTileRegisters>, kTileRows> sum;
    for (auto& row : sum) row.fill(F(0.0f));
    const auto add_term = [&](const float* from_a, const float* from_b) {
      const F left = simd::load<Arch>(from_b), right = simd::load<Arch>(from_b + kLanes);
      for (size_t i = 0; i < kTileRows; ++i) {
        const F factor(from_a[i]);
        sum[i][0] = sum[i][0] + factor * left;
        sum[i][1] = sum[i][1] + factor * right;
      }
    };
    size_t p = 0;
    for (; p + 2 <= depth; p += 2, a += 2 * kTileRows, b += 2 * kTileRegisters * kLanes) {
      add_term(a, b);
      add_term(a + kTileRows, b + kTileRegisters * kLanes);
    }
    if (p < depth) add_term(a, b);
    for (size_t i = 0; i < kTileRows; ++i, c += stride)
      for (size_t k = 0; k < kTileRegisters; ++k) {
        float* const at = c + k * kLanes;
        F value = sum[i][k];
        if (how == Update::add) value = simd::load<Arch>(at) + value;
        if (how == Update::subtract) value = simd::load<Arch>(at) - value;
        value.store_unaligned(at);
      }
  }
};

struct MultiplyRow {
  template <class Arch>
  void operator()(Arch, const float* a, const float* packed, size_t depth, size_t columns, float* c) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>, kRegisters = kPackedColumns / kLanes;
    for (size_t j = 0; j < columns; j += kPackedColumns) {
      std::array<F, kRegisters> total;
      total.fill(F(0.0f));
      for (size_t p0 = 0; p0 < depth; p0 += kProductDepth) {
        std::array<F, kRegisters> sum;
        sum.fill(F(0.0f));
        const size_t end = std::min(depth, p0 + kProductDepth);
        for (size_t p = p0; p < end; ++p, packed += kPackedColumns) {
          const F factor(a[p]);
          for (size_t k = 0; k < kRegisters; ++k) sum[k] = sum[k] + factor * simd::load<Arch>(packed + k * kLanes);
        }
        for (size_t k = 0; k < kRegisters; ++k) total[k] = p0 == 0 ? sum[k] : total[k] + sum[k];
      }
      std::array<float, kPackedColumns> out;
      for (size_t k = 0; k < kRegisters; ++k) total[k].store_unaligned(out.data() + k * kLanes);
      std::copy_n(out.data(), std::min(kPackedColumns, columns - j), c + j);
    }
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

size_t matmul_workspace(size_t rows, size_t columns, size_t depth) noexcept {
  return std::min(depth, kProductDepth) *
         (round_up(std::min(columns, kBlockColumns), kWidestTile) + round_up(std::min(rows, kBlockRows), kTileRows));
}

void matmul(const Factor& a, const Factor& b, size_t depth, size_t rows, size_t columns, Update update, Region region,
            float* c, size_t c_stride, float* workspace) noexcept {
  if (depth == 0 && update == Update::set)
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = region == Region::upper ? i : 0; j < columns; ++j) c[i * c_stride + j] = 0;
  kernels::run<Matmul>(a, b, depth, rows, columns, update, region, c, c_stride, workspace);
}

void pack_columns(const Factor& b, size_t depth, size_t columns, float* packed) noexcept {
  for (size_t j = 0; j < columns; j += kPackedColumns) {
    const size_t width = std::min(kPackedColumns, columns - j);
    for (size_t p = 0; p < depth; ++p, packed += kPackedColumns) {
      for (size_t i = 0; i < width; ++i) packed[i] = b.data[(j + i) * b.step + p * b.depth_step];
      std::fill(packed + width, packed + kPackedColumns, 0.0f);
    }
  }
}

void multiply_row(const float* a, const float* packed, size_t depth, size_t columns, float* c) noexcept {
  kernels::run<MultiplyRow>(a, packed, depth, columns, c);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
