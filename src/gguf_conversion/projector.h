// The towers and the projector of a model that sees images, as the file that llama.cpp loads next to the language model's
// ("mmproj").
#pragma once
#include "gguf_conversion/conversion.h"

namespace wasmquant::conversion {

/// Errors: format-unsupported for models without a row in projectors.def or without tensors of a tower, argument-invalid naming the
/// missing key of config.json or preprocessor_config.json; those of map_tensors().
Result<GgufConversion> convert_projector(const ModelFiles& files, std::span<const SourceTensor> tensors,
                                         DiagnosticList& diagnostics);

}  // namespace wasmquant::conversion
