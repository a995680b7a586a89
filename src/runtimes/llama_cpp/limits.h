// What a model computes and llama.cpp does not, of what GGUF has no key for: said when a model's files become a GGUF file.
#pragma once
#include "core/diagnostic.h"
#include "core/json.h"
#include "families/sentence/sentence_modules.h"
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/architectures/hyperparameters.h"

namespace wasmquant::llama_cpp {

/// The scale of attention (attention-scale-lost) and the layers without rotary embeddings (loader-limit).
void warn_of_config(const json::Value& config, const conversion::Family& family,
                    const conversion::Hyperparameters& parameters, DiagnosticList& diagnostics);

/// Modules of sentence-transformers behind the pooling: loader-limit for each.
void warn_of_modules(const families::SentenceModules& modules, DiagnosticList& diagnostics);

/// The number of the modules' only way of pooling (enum llama_pooling_type); 0 if there is no pooling. A way that it
/// lacks is loader-limit, and 0.
uint32_t pooling_type(const families::SentenceModules& modules, DiagnosticList& diagnostics);

}  // namespace wasmquant::llama_cpp
