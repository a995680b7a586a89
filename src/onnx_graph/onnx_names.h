// Names for what is added to a model: none that it has, and none twice.
#pragma once
#include <string>

#include "core/list.h"
#include "formats/onnx/onnx.h"

namespace wasmquant::conversion {

class OnnxNames {
 public:
  explicit OnnxNames(const onnx::Model& model) : model_(model) {}
  /// `name`, with underscores after it where it is taken.
  std::string fresh(std::string name);

 private:
  // False: another name with this hash, most likely the same, was given before.
  bool add(uint64_t hash);

  const onnx::Model& model_;
  List<uint64_t> table_;  // hashes of names given, 0: free; its size is a power of two
  size_t count_ = 0;
};

}  // namespace wasmquant::conversion
