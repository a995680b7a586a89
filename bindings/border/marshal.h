// The boundary between JavaScript and the core: texts, numbers, and addresses of memory as numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/task/task.h"

namespace wasmquant::bindings {

/// Unsigned, so that the upper half of a 4 GiB memory stays positive.
using Address = uintptr_t;

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}

/// `count` values at an address that JavaScript gives.
template <class T>
std::span<const T> values_at(Address address, double count) {
  return {pointer<const T>(address), static_cast<size_t>(count)};
}

/// Bytes in memory that JavaScript reads or writes; valid until the next call of the handle that gave them.
using Region = std::span<const uint8_t>;

template <class T, size_t N>
Region region_of(std::span<T, N> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}
inline Region region_of(std::string_view bytes) { return region_of(std::span(bytes.data(), bytes.size())); }

/// JSON text, written already.
struct JsonText {
  std::string text;
};

/// A document and named regions.
struct Parts {
  json::Value facts;
  List<std::string_view> names;
  List<Region> regions;

  void add(std::string_view name, Region region) {
    names.push_back(name);
    regions.push_back(region);
  }
};

template <class T>
using Made = Result<std::unique_ptr<T>>;

/// Of {"tileBytes", "columnTileBytes"}; missing members keep their defaults.
TileBytes tile_bytes_of(const json::Value& options);

/// Counts live bound objects, for leak tests.
struct Counted {
  static inline int live = 0;
  Counted() { ++live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --live; }
};

}  // namespace wasmquant::bindings
