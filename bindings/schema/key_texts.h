// What each key of a config does and its type in TypeScript: of the tables of keys, for the library's types.
#pragma once
#include "core/json.h"

namespace wasmquant {

/// By title of the class in the schema ("QLayerConfig"): [{"key", "type", "text"}]; "" has the keys of every dialect.
json::Value key_texts();

}  // namespace wasmquant
