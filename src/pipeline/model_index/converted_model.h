// A model on its way to GGUF: tensors and metadata of the output, without types.
#pragma once
#include <string_view>

#include "core/diagnostic.h"
#include "core/list.h"
#include "gguf_conversion/conversion.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// The files a conversion reads in addition to the weights; views into `model`. Errors: those of sentence_modules_of.
Result<conversion::ModelFiles> model_files(const ModelIndex& model, std::string_view name);

/// Of the model's sibling files. Errors: those of families::sentence_modules.
Result<families::SentenceModules> sentence_modules_of(const ModelIndex& model);

/// The change that conversion applies to a tensor's values.
ValueTransform change_of(const conversion::ConvertedTensor& tensor) noexcept;

/// The tensor of `model` that a converted one has its values from: one of the model, or one that is made of rows of its
/// tensors. Errors: dtype-unsupported, format-unsupported for rows of a quantized tensor that cannot be separated.
Result<ModelTensor> source_of(const ModelIndex& model, const conversion::ConvertedTensor& tensor);

/// GGUF input keeps every key and tensor except split keys; Hugging Face input gets names, metadata and tokenizer
/// converted. `name`: of the model, or "". `is_projector`: the file for images in place of the language model's. Errors:
/// format-unsupported without config.json; those of conversion::convert and convert_projector.
Result<conversion::GgufConversion> convert_model(const ModelIndex& model, std::string_view name, bool is_projector,
                                                 List<Diagnostic>& diagnostics);

}  // namespace wasmquant
