// The border between JavaScript and the core: results as JSON text, errors as data, bulk as addresses in the module's
// memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "config/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/message.h"
#include "core/result.h"

namespace wasmquant::bindings {

/// {"ok": value}
inline std::string ok(json::Value value) {
  json::Value out;
  out.set("ok", std::move(value));
  return json::write(out);
}

/// {"error": {"code", "where", "message", "diagnostics"?}}
inline std::string fail(const Error& error, const List<Diagnostic>& diagnostics = {}) {
  json::Value body;
  body.set("code", name_of(error.code));
  body.set("where", error.where);
  body.set("message", error.message);
  if (!diagnostics.empty()) body.set("diagnostics", to_json(diagnostics));
  json::Value out;
  out.set("error", std::move(body));
  return json::write(out);
}

inline std::string reply(const Status& status) { return status ? ok(nullptr) : fail(status.error()); }

/// Addresses cross as numbers: unsigned, so that the upper half of a 4 GiB memory stays positive.
using Address = uintptr_t;

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}
inline json::Value address(const void* at) {
  return json::Value(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at)));
}

/// Counts the objects that JavaScript holds, for leak tests.
struct Counted {
  static inline int live = 0;
  Counted() { ++live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --live; }
};

}  // namespace wasmquant::bindings
