#include "marshal.h"

namespace wasmquant::bindings {

std::string ok(json::Value&& value) {
  json::Value out;
  out.set("ok", std::move(value));
  return json::write(out);
}

std::string ok_text(std::string_view json) {
  std::string out = R"({"ok":)";
  out.reserve(out.size() + json.size() + 1);
  out += json;
  out += '}';
  return out;
}

std::string fail(const Error& error) { return fail(error, {}); }

std::string fail(const Error& error, const List<Diagnostic>& diagnostics) {
  json::Value body;
  body.set("code", name_of(error.code));
  body.set("where", error.where);
  body.set("message", error.message);
  if (!diagnostics.empty()) body.set("diagnostics", to_json(diagnostics));
  json::Value out;
  out.set("error", std::move(body));
  return json::write(out);
}

std::string reply(const Status& status) { return status ? ok(nullptr) : fail(status.error()); }

json::Value address(const void* at) { return json::Value(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at))); }

json::Value bytes_json(std::string_view bytes) {
  json::Value out;
  out.set("pointer", address(bytes.data()));
  out.set("bytes", static_cast<uint64_t>(bytes.size()));
  return out;
}

}  // namespace wasmquant::bindings
