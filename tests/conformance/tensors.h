// Tensors of a golden family: files of one folder, read whole and kept, values widened to double (every storage dtype
// with numbers of up to 32 bits fits exactly).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "formats/tensor_index.h"

namespace conformance {

/// The bytes of a file. Error: argument-invalid with the reason.
wasmquant::Result<std::string> read_file(const std::string& path);

struct Tensor {
  wasmquant::StorageDtype dtype = wasmquant::StorageDtype::F32;
  std::vector<uint64_t> shape;
  std::vector<double> values;  // 8-bit float dtypes: their codes

  std::vector<float> as_floats() const { return {values.begin(), values.end()}; }
};

class TensorFiles {
 public:
  explicit TensorFiles(std::string folder) : folder_(std::move(folder)) {}
  /// Errors: those of the safetensors reader; tensor-missing; dtype-unsupported.
  wasmquant::Result<Tensor> read(const std::string& file, const std::string& key);

 private:
  struct File {
    std::string bytes;
    wasmquant::FileIndex index;
  };
  wasmquant::Result<const File*> open(const std::string& file);

  std::string folder_;
  std::map<std::string, File> files_;
};

}  // namespace conformance
