// What JavaScript gets of a result: texts, numbers, or the address of numbers. A call that fails gives what no result is
// (null, false, NaN, the address 0, or ""), and its error waits in take_error(). Contract: web/lib/engine/module.ts.
#pragma once
#include "border/marshal.h"
#include "core/diagnostic.h"
#include "pipeline/task/tiles.h"

namespace wasmquant::bindings {

/// Keeps the error of this call.
void keep(const Error& error, const List<Diagnostic>& diagnostics = {});
inline std::string fail(const Error& error, const List<Diagnostic>& diagnostics = {}) {
  keep(error, diagnostics);
  return {};
}
/// JSON {"code", "where", "message", "diagnostics"?} of the last call that failed; "" if none did since.
std::string take_error();

bool reply(const Status& status);
double reply(const Result<bool>& result);
double reply(const Result<double>& result);
std::string reply(const json::Value& value);
std::string reply(const Result<json::Value>& result);
std::string reply(JsonText&& written);

/// The address of a number of float64 values and these values; valid until the next reply.
/// Of each read: part, file, begin, row bytes, stride, rows, address.
Address reply(const List<TileRead>& reads);
Address reply(const Result<List<TileRead>>& result);
/// The number of units; 7 sums of each; then of each write: file, offset, address, bytes.
Address reply(const Result<TileResult>& result);
/// Of each region: address, bytes.
Address reply(std::span<const Region> regions);
Address reply(const Result<List<Region>>& result);
/// The first region is JSON {"facts", "names": of the regions that follow}.
Address reply(const Result<Parts>& result);

inline Address reply(const List<Region>& regions) { return reply(std::span(regions.data(), regions.size())); }
inline Address reply(Region region) { return reply(std::span(&region, 1)); }
template <class T>
Address reply(const Result<std::span<T>>& result) {
  if (result) return reply(region_of(*result));
  keep(result.error());
  return 0;
}

/// JavaScript owns it: delete().
template <class T>
T* reply(Made<T>&& made, const List<Diagnostic>& diagnostics = {}) {
  if (made) return made->release();
  keep(made.error(), diagnostics);
  return nullptr;
}

}  // namespace wasmquant::bindings
