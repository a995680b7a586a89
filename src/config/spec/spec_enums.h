// The choices of a spec and of a config.
#pragma once
#include <cstdint>

namespace wasmquant {

#define WASMQUANT_SPEC_ENUM(type, words, ...) enum class type : uint8_t { __VA_ARGS__ };
#include "config/spec/spec_fields.def"

}  // namespace wasmquant
