// What a file's header says about its tensors, whatever the format.
#pragma once
#include <cstdint>
#include <memory>
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

/// A file inside a file whose bytes are compressed: [begin, end) of the outer one, of `bytes` inflated.
struct DeflatedFile {
  std::string name;
  uint64_t begin = 0, end = 0, bytes = 0;
  uint32_t crc = 0;  // CRC-32 of what comes out
};

/// What a format keeps of a file for those who know the format: each derives its own.
struct FileDetails {
  virtual ~FileDetails() = default;
};

/// One file: its tensors in order of offset and its free metadata in order of appearance.
struct FileIndex {
  List<StoredTensor> tensors;
  List<std::pair<std::string, std::string>> metadata;
  List<std::string> data_files;                // that hold values of its tensors, relative to its folder
  List<DeflatedFile> deflated;                 // to be inflated, and read as files of the model
  std::shared_ptr<const FileDetails> details;  // null: the format has none
};

}  // namespace wasmquant
