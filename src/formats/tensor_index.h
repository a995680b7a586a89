// A file's tensors according to its header, for every format.
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

/// A compressed file inside a file: [begin, end) of the outer one, `bytes` bytes when inflated.
struct DeflatedFile {
  std::string name;
  uint64_t begin = 0, end = 0, bytes = 0;
  uint32_t crc = 0;  // CRC-32 of the inflated bytes
};

/// Which part of a model a file is, if the file or its name says so.
struct Part {
  uint32_t number = 1;  // from 1
  uint32_t count = 1;   // 1: a whole model, or nothing is known
  std::string model;    // tells parts of several models of one list apart; may be empty
};

/// Format-specific information about a file; each format derives its own.
struct FileDetails {
  virtual ~FileDetails() = default;
};

/// One file: tensors by offset, and free-form metadata in order of appearance.
struct FileIndex {
  List<StoredTensor> tensors;
  List<std::pair<std::string, std::string>> metadata;
  List<std::string> data_files;  // files with values of its tensors, relative to its folder
  List<DeflatedFile> deflated;   // to be inflated and read as files of the model
  Part part;
  std::shared_ptr<const FileDetails> details;  // null: none
};

}  // namespace wasmquant
