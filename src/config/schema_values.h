// JSON Schema of single values: words, kinds, types of layers, rows of tables.
#pragma once
#include "config/dialects/dialects.h"
#include "config/spec/algorithm_table.h"

namespace wasmquant::config {

/// The words that a key may have; empty: not words.
json::Array words_of(const Key& key, const DialectInfo& dialect);
/// One of these, or null.
json::Value one_of_words(const json::Array& words);
/// One of these as index_of_word reads them, or null.
json::Value one_of_words_or_python(const json::Array& words);
/// Names of the types of ggml that can be written.
json::Array ggml_types();
/// Types of layers by module.
json::Value layer_types();
/// A value that is only of some kind.
json::Value plain_value(const Key& key);
/// A row of algorithms.def: any of its names, and its fields.
json::Value algorithm_of(const AlgorithmInfo& row);

}  // namespace wasmquant::config
