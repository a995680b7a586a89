// Any bytes: parse must not crash, and what it accepts must survive write and parse, compact and indented.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wasmquant;
  const json::Limits limits{.max_bytes = 1 << 20, .max_depth = 32, .max_nodes = 10'000};
  const auto value = json::parse({reinterpret_cast<const char*>(data), size}, limits);
  if (!value) return 0;
  for (const int indent : {0, 2}) {
    const auto again = json::parse(json::write(*value, indent));
    if (!again || !(*again == *value)) std::abort();
  }
  return 0;
}
