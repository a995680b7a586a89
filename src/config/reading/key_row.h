// Rows of keys.def, one for each key of a class: WASMQUANT_..._KEY(key, type, text, members of Key).
//   type  in TypeScript, whole, where the rest of the row doesn't say it; "": it does. "!" before it: the key must be given
//   text  what the key does
// Type and text are not part of the module: the build makes TypeScript's types of them (bindings/schema/key_texts.cpp).
#pragma once
#include "config/reading/object_reader.h"

/// The row of a table of keys.
#define WASMQUANT_KEY_ROW(key, type, text, ...) {.name = key, __VA_ARGS__},
