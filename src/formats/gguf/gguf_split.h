// Models in several GGUF files, NAME-00001-of-00003.gguf and so on, as in llama-gguf-split and llama.cpp's loader.
// (formats/part_name.h). Every part has a header; the first has the model's metadata, all have
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

/// What the split keys say; a whole model has none, or a count of 1. Errors: file-invalid.
Result<Part> part_of(const Metadata& metadata);

/// Checks that `parts`, all of one model and with FileMetadata as details, have as many tensors as split.tensors.count
/// says, and none twice. Errors: file-invalid, tensor-missing, tensor-duplicate; `where` is the part's number.
Status check_parts(std::span<const FileIndex> parts);

/// Index of the first tensor of each part so that each part's data is at most `max_bytes`, or a single larger tensor.
/// Tensors stay in order. Errors: those of tensor_bytes, file-too-large (too many parts).
Result<List<uint32_t>> split_by_size(std::span<const NewTensor> tensors, uint32_t alignment, uint64_t max_bytes);

/// split_by_size at the smallest size of at most `count` parts. Requires count >= 1. Errors: those of split_by_size.
Result<List<uint32_t>> split_in_parts(std::span<const NewTensor> tensors, uint32_t alignment, uint32_t count);

/// Metadata of part `number` (from 0) of `count`: the split keys, and in the first part everything else.
Metadata part_metadata(const Metadata& model, uint32_t number, uint32_t count, uint32_t tensor_count);

/// Removes the split keys, to join a model into one file.
void erase_split_keys(Metadata& metadata);

}  // namespace wasmquant::gguf
