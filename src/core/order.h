// Sorted orders of things that are not moved. One sort serves all: each std::sort would cost 6 KB of WebAssembly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/list.h"

namespace wasmquant {

/// Any callable with that signature, not owned.
template <class Signature>
class CallableRef;
template <class Answer, class... Arguments>
class CallableRef<Answer(Arguments...)> {
 public:
  template <class F>
  requires std::is_invocable_r_v<Answer, const F&, Arguments...> CallableRef(const F& callable)
      : callable_(&callable), call_([](const void* f, Arguments... arguments) -> Answer {
          return (*static_cast<const F*>(f))(arguments...);
        }) {}
  Answer operator()(Arguments... arguments) const { return call_(callable_, arguments...); }

 private:
  const void* callable_;
  Answer (*call_)(const void*, Arguments...);
};

/// Whether element a comes before element b.
using IndexLess = CallableRef<bool(uint32_t a, uint32_t b)>;
/// The name of an element.
using NameOf = CallableRef<std::string_view(uint32_t index)>;

/// The indices 0 … count - 1 in the order of `less`; equal elements by index. count < 2^32.
List<uint32_t> sorted_order(size_t count, const IndexLess& less);
List<uint32_t> sorted_by_name(size_t count, const NameOf& name_of);

/// The index of `name` in an order by name, or where it would be inserted.
size_t place_of(std::string_view name, const List<uint32_t>& order, const NameOf& name_of);

/// The first index below `count` for which `is_before` is false; all before it are true. `count` if there is none.
size_t first_after(size_t count, CallableRef<bool(size_t index)> is_before);

/// The first index whose name occurred before. O(n log n) for any file.
std::optional<uint32_t> first_repeated(size_t count, const NameOf& name_of);

}  // namespace wasmquant
