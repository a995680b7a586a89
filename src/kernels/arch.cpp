#include "kernels/arch.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "kernels/simd.h"

namespace wasmquant::kernels {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"emulated128", "sse4_2", "avx2", "wasm"};

struct Available {
  std::array<Simd, kNames.size()> archs{};
  size_t count = 0;
};

Available detect() noexcept {
  Available found;
#if defined(__wasm_simd128__)
  found.archs[found.count++] = Simd::wasm;
#else
  found.archs[found.count++] = Simd::emulated128;
#if defined(WASMQUANT_X86_KERNELS)
  const auto cpu = xsimd::available_architectures();
  if (cpu.has(xsimd::sse4_2{})) found.archs[found.count++] = Simd::sse4_2;
  if (cpu.has(xsimd::avx2{})) found.archs[found.count++] = Simd::avx2;
#endif
#endif
  return found;
}

const Available& available() noexcept {
  static const Available found = detect();
  return found;
}

bool is_available(Simd arch) noexcept {
  for (Simd candidate : available_archs())
    if (candidate == arch) return true;
  return false;
}

Simd initial_arch() noexcept {
#if !defined(__wasm__)
  if (const char* wanted = std::getenv("WASMQUANT_SIMD")) {
    const std::optional<Simd> arch = simd_named(wanted);
    if (arch && is_available(*arch)) return *arch;
    std::fprintf(stderr, "WASMQUANT_SIMD=%s is not available here; use one of:", wanted);
    for (Simd candidate : available_archs()) std::fprintf(stderr, " %s", name_of(candidate).data());
    std::fprintf(stderr, ", or unset it\n");
    std::abort();
  }
#endif
  return available_archs().back();
}

std::atomic<Simd>& chosen() noexcept {
  static std::atomic<Simd> arch = initial_arch();
  return arch;
}

}  // namespace

std::string_view name_of(Simd arch) noexcept { return kNames[static_cast<size_t>(arch)]; }

std::optional<Simd> simd_named(std::string_view name) noexcept {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Simd>(i);
  return std::nullopt;
}

std::span<const Simd> available_archs() noexcept { return {available().archs.data(), available().count}; }

Simd active_arch() noexcept { return chosen().load(std::memory_order_relaxed); }

bool force_arch(Simd arch) noexcept {
  if (!is_available(arch)) return false;
  chosen().store(arch, std::memory_order_relaxed);
  return true;
}

}  // namespace wasmquant::kernels
