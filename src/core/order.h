// Sorted orders of things that stay where they are. One sort serves every caller: each instantiation of
// std::sort would cost about 6 KB of WebAssembly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "core/list.h"

namespace wasmquant {

/// Any callable bool(uint32_t a, uint32_t b), not owned: whether element a comes before element b.
class IndexLess {
 public:
  template <class F>
  requires std::is_invocable_r_v<bool, const F&, uint32_t, uint32_t> IndexLess(const F& less)
      : callable_(&less),
        call_([](const void* f, uint32_t a, uint32_t b) -> bool { return (*static_cast<const F*>(f))(a, b); }) {}
  bool operator()(uint32_t a, uint32_t b) const { return call_(callable_, a, b); }

 private:
  const void* callable_;
  bool (*call_)(const void*, uint32_t, uint32_t);
};

/// The indices 0 … count - 1 in the order of `less`; equal elements by index. count < 2^32.
List<uint32_t> sorted_order(size_t count, const IndexLess& less);

/// The first index whose element equals one before it, given a strict order. O(n log n), whatever a file contains.
std::optional<uint32_t> first_repeated(size_t count, const IndexLess& less);

}  // namespace wasmquant
