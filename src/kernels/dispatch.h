// From a public kernel function to the body for the running instruction set. A kernel is a struct with
//   template <class Arch> Result operator()(Arch, arguments...) const noexcept;
// and its public function is one line, `return run<Kernel>(arguments...)`, inside namespace WASMQUANT_ENTRY_NAMESPACE.
//
// WebAssembly: run calls the body for xsimd::wasm directly.
// Native: every kernel file is compiled once plainly (public functions, emulated<128> bodies, this dispatcher) and once
// per x86 instruction set with WASMQUANT_KERNEL_ARCH=sse4_2|avx2 and its -m flags (cmake/kernels.cmake). Those compiles
// emit entry<Arch, Kernel>; the plain one only declares it, so none of their code runs before the CPU check.
#pragma once
#include <utility>

#include "kernels/arch.h"
#include "kernels/simd.h"

#if defined(WASMQUANT_KERNEL_ARCH)
#define WASMQUANT_ENTRY_NAMESPACE wasmquant::kernels::WASMQUANT_KERNEL_ARCH
#else
#define WASMQUANT_ENTRY_NAMESPACE wasmquant::kernels
#endif

namespace wasmquant::kernels {

/// What a kernel returns.
template <class Arch, class Kernel, class... Args>
using ResultOf = decltype(Kernel{}(Arch{}, std::declval<Args>()...));

#if defined(__wasm_simd128__)

template <class Kernel, class... Args>
auto run(const Args&... args) noexcept {
  return Kernel{}(xsimd::wasm{}, args...);
}

#elif defined(WASMQUANT_KERNEL_ARCH)

template <class Arch, class Kernel, class... Args>
[[gnu::noinline, gnu::used]] ResultOf<Arch, Kernel, Args...> entry(const Args&... args) noexcept {
  return Kernel{}(Arch{}, args...);
}

template <class Kernel, class... Args>
auto run(const Args&... args) noexcept {
  return entry<xsimd::WASMQUANT_KERNEL_ARCH, Kernel, Args...>(args...);
}

#else

template <class Arch, class Kernel, class... Args>
ResultOf<Arch, Kernel, Args...> entry(const Args&... args) noexcept;

template <class Kernel, class... Args>
auto run(const Args&... args) noexcept {
#if defined(WASMQUANT_X86_KERNELS)
  switch (active_arch()) {
    case Simd::avx2:
      return entry<xsimd::avx2, Kernel, Args...>(args...);
    case Simd::sse4_2:
      return entry<xsimd::sse4_2, Kernel, Args...>(args...);
    default:
      break;
  }
#endif
  return Kernel{}(xsimd::emulated<128>{}, args...);
}

#endif

}  // namespace wasmquant::kernels
