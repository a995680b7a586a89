// A Hugging Face model as a GGUF file: metadata, and the source of each tensor. Determined before any weight is read;
// nothing here depends on values.
//
// Use by a plan: 1. convert()  2. choose_types() with facts_of(metadata), to fix the type of each tensor  (kept: F32)
// 3. describe_recipe(), gguf::write_header()  4. for each tensor, tile by tile: read the rows given by source_row()
// (transpose: the columns), widen to float32, add 1 if plus_one, quantize into the tensor's bytes of the file.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"
#include "families/sentence/sentence_modules.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tensors/converted_tensor.h"
#include "gguf_conversion/tokenizer/tokenizer.h"

namespace wasmquant::conversion {

/// The sibling files, as texts; empty: missing.
struct ModelFiles {
  std::string_view name;                        // of the model, for general.name
  const Result<json::Value>* config = nullptr;  // config.json, parsed
  families::SentenceModules modules;
  TokenizerFiles tokenizer;
  List<std::string_view> processors;  // what prepares images, the file that counts last
};

/// The result of convert().
struct GgufConversion {
  gguf::Metadata metadata;
  List<ConvertedTensor> tensors;  // in the order of their sources, stacked experts last
};

/// Errors: json-invalid, argument-invalid (keys of config.json), format-unsupported (unknown model type or tensor),
/// tensor-missing, tensor-duplicate, shape-mismatch.
Result<GgufConversion> convert(const ModelFiles& files, std::span<const SourceTensor> tensors,
                               DiagnosticList& diagnostics);

}  // namespace wasmquant::conversion
