// The boundary between JavaScript and the core: results and errors as JSON text, bulk data as addresses in memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/message.h"
#include "core/result.h"

namespace wasmquant::bindings {

/// {"ok": value}
std::string ok(json::Value&& value);
std::string ok_text(std::string_view json);
/// {"error": {"code", "where", "message", "diagnostics"?}}
std::string fail(const Error& error);
std::string fail(const Error& error, const List<Diagnostic>& diagnostics);
/// {"ok": null} or the error.
std::string reply(const Status& status);

/// Addresses are passed as numbers: unsigned, so that the upper half of a 4 GiB memory stays positive.
using Address = uintptr_t;

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}
json::Value address(const void* at);
/// {"pointer", "bytes"}
json::Value bytes_json(std::string_view bytes);

/// Counts live bound objects, for leak tests.
struct Counted {
  static inline int live = 0;
  Counted() { ++live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --live; }
};

}  // namespace wasmquant::bindings
