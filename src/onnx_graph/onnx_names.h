// Unique names for additions to a model.
#pragma once
#include <string>

#include "core/list.h"
#include "formats/onnx/onnx.h"

namespace wasmquant::conversion {

/// The names of one model.
class OnnxNames {
 public:
  explicit OnnxNames(const onnx::Model& model) : model_(model) {}
  /// `name`, with underscores appended while it is taken.
  std::string fresh(std::string name);

 private:
  // False: a name with this hash, most likely the same, exists.
  bool add(uint64_t hash);

  const onnx::Model& model_;
  List<uint64_t> table_;  // hashes of taken names, 0: free; its size is a power of two
  size_t count_ = 0;
};

}  // namespace wasmquant::conversion
