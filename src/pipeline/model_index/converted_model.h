// A model on its way to GGUF: the tensors and the metadata that its file gets, before types.
#pragma once
#include <string_view>

#include "core/diagnostic.h"
#include "core/list.h"
#include "gguf_conversion/conversion.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// What a conversion reads beside the weights; views into `model`.
conversion::ModelFiles model_files(const ModelIndex& model, std::string_view name);

/// What converting does to the values of a tensor.
ValueChange change_of(const conversion::ConvertedTensor& tensor) noexcept;

/// Of GGUF every key and tensor as it is, without split keys; of Hugging Face's layout names, metadata and tokenizer
/// converted. `name`: of the model, may be empty. Errors: format-unsupported without config.json; those of
/// conversion::convert.
Result<conversion::Conversion> convert_model(const ModelIndex& model, std::string_view name,
                                             List<Diagnostic>& diagnostics);

}  // namespace wasmquant
