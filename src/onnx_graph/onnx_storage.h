// Where the values of a rewritten model are: in it, or in a file for external data.
#pragma once
#include <string>

#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_rewrite.h"

namespace wasmquant::conversion {

class OnnxStorage {
 public:
  /// The editor must outlive it.
  explicit OnnxStorage(OnnxEditor& editor) : editor_(editor) {}

  /// From now on values of at least kLeastExternalBytes go into this file.
  void use_file(std::string name) { file_ = std::move(name); }
  /// Adds the values of `segment` as fields of a TensorProto.
  void add_values(Pieces& tensor, const Segment& segment);
  /// An unquantized tensor: its values move if they are or become external.
  void keep(const onnx::Tensor& tensor);
  /// The content of the file.
  const Pieces& data() const noexcept { return data_; }

 private:
  OnnxEditor& editor_;
  std::string file_;  // empty: none
  Pieces data_;
};

}  // namespace wasmquant::conversion
