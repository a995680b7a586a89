// The instruction set that the kernels run on. WebAssembly has one, fixed at build time; a native build picks the best
// one of the machine at the first call. The choice changes speed, never results.
// WASMQUANT_SIMD=emulated128|sse4_2|avx2 in the environment overrides it (native builds).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace wasmquant::kernels {

/// emulated128: xsimd's scalar model of a 128-bit register; runs the WebAssembly-width bodies under sanitizers.
enum class Simd : uint8_t { emulated128, sse4_2, avx2, wasm };

/// "emulated128", "sse4_2", ...
std::string_view name_of(Simd arch) noexcept;
std::optional<Simd> simd_named(std::string_view name) noexcept;

/// What this build can run on this machine, slowest first; never empty.
std::span<const Simd> available_archs() noexcept;
/// The instruction set in use.
Simd active_arch() noexcept;
/// Makes all later kernel calls, in every thread, run on `arch`. False, and nothing changes, if it is unavailable.
bool force_arch(Simd arch) noexcept;

}  // namespace wasmquant::kernels
