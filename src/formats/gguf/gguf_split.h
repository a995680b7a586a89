// Models in several GGUF files: NAME-00001-of-00003.gguf and so on, as llama-gguf-split and llama.cpp's loader name and
// read them. Every part has its own header; the first one carries the model's metadata, all carry
//   split.no (u16, from 0), split.count (u16), split.tensors.count (i32, of the whole model)
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "formats/gguf/gguf.h"

namespace wasmquant::gguf {

inline constexpr uint32_t kMaxParts = 65535;

/// "a/b-00002-of-00003.gguf" of the stem "a/b", the number 2 (from 1) and 3 parts.
std::string part_name(std::string_view stem, uint32_t number, uint32_t count);

/// Whether `parts`, in the order of their numbers and with FileMetadata as their details, are one model: split.no and
/// split.count agree with that order, the tensors are as many as split.tensors.count says, none stands in two parts.
/// Errors: file-invalid, tensor-missing, tensor-duplicate; `where` names the part by its number.
Status check_parts(std::span<const FileIndex> parts);

/// Index of the first tensor of each part when no part's data shall exceed `max_bytes`; a tensor larger than that has a
/// part of its own. Tensors stay in order. Errors: those of tensor_bytes, file-too-large (too many parts).
Result<List<uint32_t>> split_by_size(std::span<const NewTensor> tensors, uint32_t alignment, uint64_t max_bytes);

/// The metadata of part `number` (from 0) of `count`: everything and the split keys in the first, else only those.
Metadata part_metadata(const Metadata& model, uint32_t number, uint32_t count, uint32_t tensor_count);

/// Removes the split keys: for a model that is to be one file again.
void erase_split_keys(Metadata& metadata);

}  // namespace wasmquant::gguf
