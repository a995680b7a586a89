// Prints the JSON Schemas of the config dialects as one object, {"quark": schema, ...}: the build writes them into the
// package.
#include <cstdio>

#include "config/dialects/dialects.h"
#include "config/schema.h"

int main() {
  wasmquant::json::Value all;
  for (const auto dialect :
       {wasmquant::Dialect::quark, wasmquant::Dialect::brevitas, wasmquant::Dialect::aihwkit, wasmquant::Dialect::gguf})
    all.set(std::string(wasmquant::config::name_of(dialect)), wasmquant::config::schema(dialect));
  std::puts(wasmquant::json::write(all).c_str());
  return 0;
}
