// What a file's header says about its tensors, whatever the format.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/list.h"
#include "numeric/storage_dtype.h"

namespace wasmquant {

/// One tensor of a file. Offsets are absolute bytes of the file, end exclusive.
struct StoredTensor {
  std::string name;
  StorageDtype dtype = StorageDtype::F32;
  std::vector<uint64_t> shape;  // C order
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// One file: its tensors in order of offset and its free metadata in order of appearance.
struct FileIndex {
  List<StoredTensor> tensors;
  List<std::pair<std::string, std::string>> metadata;
};

}  // namespace wasmquant
