// The weights of a checkpoint as values of a graph: initializers in their own dtype, then Cast where that is not float32, so that the
// file has the checkpoint's bytes.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "onnx_conversion/graph_text.h"

namespace wasmquant::conversion {

/// A tensor of the checkpoint.
struct StoredValues {
  std::string_view name;
  uint32_t data_type = 0;  // TensorProto.DataType
  std::span<const uint64_t> shape;
  std::string_view location;  // of its file, for the graph
  uint64_t begin = 0, end = 0;
};

/// Where tensors are found by name.
class StoredTensors {
 public:
  virtual ~StoredTensors() = default;
  virtual bool has(std::string_view name) const noexcept = 0;
  /// Errors: tensor-missing, dtype-unsupported.
  virtual Result<StoredValues> find(std::string_view name) const = 0;
};

class StoredWeights {
 public:
  /// Both must outlive it.
  StoredWeights(const StoredTensors& tensors, GraphText& graph) : tensors_(tensors), graph_(graph) {}

  bool has(std::string_view name) const noexcept { return tensors_.has(name); }
  /// The float32 value of a tensor of that shape. Errors: those of find(), shape-mismatch. After an error the text is of no use, and
  /// status() keeps it.
  Value operator()(const std::string& name, std::initializer_list<uint64_t> shape);
  /// The first error of all calls.
  const Status& status() const noexcept { return status_; }

 private:
  Result<Value> add(const std::string& name, std::span<const uint64_t> shape);

  const StoredTensors& tensors_;
  GraphText& graph_;
  List<std::pair<std::string, Value>> added_;  // their names, and those of their values
  Status status_;
};

}  // namespace wasmquant::conversion
