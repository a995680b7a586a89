// Modules that all layers are made of: products, norms, activations.
#pragma once
#include <string>
#include <string_view>

#include "model/config/architecture.h"
#include "onnx_conversion/graph_text.h"
#include "onnx_conversion/stored_weights.h"

namespace wasmquant::conversion {

class ModuleGraph {
 public:
  /// All must outlive it.
  ModuleGraph(const model::Architecture& architecture, GraphText& graph, StoredWeights& weights)
      : architecture_(architecture), graph_(graph), weights_(weights) {}

  /// x [.., columns] times the matrix of `part` in the module of that path, with its bias; [.., rows].
  Value linear(Value x, const std::string& module, model::ModelPart part, uint64_t rows, uint64_t columns);
  /// The same with a matrix [rows, columns] that is there already.
  Value product(Value x, Value matrix);
  /// Of the last axis of x, which has `columns`.
  Value norm(Value x, const std::string& module, model::ModelPart part, uint64_t columns);
  /// x times a number; x if that is 1.
  Value scaled(Value x, float factor);
  /// cap * tanh(x / cap); x without a cap.
  Value capped(Value x, float cap);
  Value activated(Value x);
  /// Of x [.., all] the parts of these lengths along an axis, one after another.
  List<Value> split(Value x, std::span<const int64_t> lengths, int64_t axis = -1);

 private:
  const model::Architecture& architecture_;
  GraphText& graph_;
  StoredWeights& weights_;
};

}  // namespace wasmquant::conversion
