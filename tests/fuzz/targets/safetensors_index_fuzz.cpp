// Any bytes as model.safetensors.index.json. Accepted file names must be plain, and the map must survive write and
// read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "formats/safetensors/safetensors_index.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wasmquant;
  const auto map = safetensors::read_shard_map({reinterpret_cast<const char*>(data), size});
  if (!map) return 0;
  for (const std::string& file : map->files)
    require(!file.empty() && file != ".." && file.find_first_of(std::string("/\\:\0", 4)) == std::string::npos);

  List<std::pair<std::string, std::string>> entries;
  List<FileIndex> files(map->files.size());
  for (const auto& [name, file] : map->tensors) {
    entries.emplace_back(name, map->files[file]);
    files[file].tensors.push_back({.name = name});
  }
  const auto again = safetensors::read_shard_map(safetensors::write_shard_map(entries, size));
  require(again && again->files == map->files && again->tensors == map->tensors);
  const auto kept = safetensors::read_shard_map(safetensors::write_shard_map(entries, size, map->text));
  require(kept && kept->files == map->files && kept->tensors == map->tensors);

  List<std::string> unmapped;
  require(static_cast<bool>(safetensors::check_shards(*map, files, unmapped)) && unmapped.empty());
  if (entries.empty()) return 0;
  files[map->tensors.back().second].tensors.pop_back();
  require(!safetensors::check_shards(*map, files, unmapped));
  return 0;
}
