#include "kernels/arch.h"

#include <doctest/doctest.h>

namespace wasmquant::kernels {
namespace {

TEST_CASE("names of instruction sets round-trip") {
  for (Simd arch : {Simd::emulated128, Simd::sse4_2, Simd::avx2, Simd::wasm}) CHECK(simd_named(name_of(arch)) == arch);
  CHECK_FALSE(simd_named("avx512").has_value());
}

TEST_CASE("only available instruction sets can be forced") {
  const Simd before = active_arch();
  bool before_is_available = false;
  for (Simd arch : available_archs()) {
    before_is_available |= arch == before;
    CHECK(force_arch(arch));
    CHECK(active_arch() == arch);
  }
  CHECK(before_is_available);
  CHECK(force_arch(before));
#if defined(__wasm__)
  CHECK_FALSE(force_arch(Simd::avx2));
#else
  CHECK_FALSE(force_arch(Simd::wasm));
#endif
  CHECK(active_arch() == before);
}

}  // namespace
}  // namespace wasmquant::kernels
