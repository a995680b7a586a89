// model.safetensors.index.json: the shard of every tensor.
//   {"metadata": {"total_size": bytes}, "weight_map": {"tensor name": "model-00001-of-00003.safetensors", ...}}
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/list.h"
#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant::safetensors {

/// model.safetensors.index.json: which file has which tensor.
struct ShardMap {
  List<std::string> files;                         // sorted by name
  List<std::pair<std::string, uint32_t>> tensors;  // name, index into files
  std::string text;                                // the original text with an empty weight_map
};
/// Errors: json-invalid, file-invalid (a shard name with slash, backslash, "..", NUL, drive letter, or an empty one;
/// more than 10,000 shards), tensor-duplicate.
Result<ShardMap> read_shard_map(std::string_view text);

/// Checks that every mapped tensor is in its file; unmapped ones go to `unmapped`, by file and offset. Errors:
/// tensor-missing; tensor-duplicate if two files have one name; argument-invalid if the map names more or fewer files.
Status check_shards(const ShardMap& map, const List<FileIndex>& files, List<std::string>& unmapped);

/// Text of the index for these files; total_size is the sum of the tensors' bytes. `original`: ShardMap::text of the
/// model, whose other members are kept byte for byte, or "".
std::string write_shard_map(const List<std::pair<std::string, std::string>>& tensor_to_file, uint64_t total_bytes,
                            std::string_view original = {});

}  // namespace wasmquant::safetensors
