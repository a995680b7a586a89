// The layers of a transformer.
#pragma once
#include <string>

#include "onnx_conversion/attention_graph.h"
#include "onnx_conversion/module_graph.h"
#include "onnx_conversion/sequence_graph.h"

namespace wasmquant::conversion {

class LayerGraph {
 public:
  /// All must outlive it.
  LayerGraph(const model::Architecture& architecture, const SequenceValues& sequence, GraphText& graph,
             ModuleGraph& modules)
      : a_(architecture), sequence_(sequence), graph_(graph), modules_(modules) {}

  /// x [batch, tokens, hidden] behind the layer whose modules begin with `path`. Decoders get an input and output for their keys and values.
  Value layer(uint32_t number, const std::string& path, Value x);

 private:
  struct Heads {
    Value q, k, v;
  };
  Value post_normed(uint32_t number, Value x);
  Value attend(uint32_t number, Value x);
  AttentionValues cache_of(uint32_t number);
  Heads project(Value x);
  Heads split_heads(Value x);
  Value positioned(uint32_t number, Value x, model::ModelPart norm, uint32_t heads);
  Value head_norm(Value x, model::ModelPart part, uint32_t heads);
  Value feed_forward(Value x);
  Value added(Value x, Value change, model::ModelPart post_norm);
  Value linear(Value x, model::ModelPart part, uint64_t rows, uint64_t columns);
  Value norm(Value x, model::ModelPart part);
  Value output(Value attended);
  std::string path_of(model::ModelPart part) const { return path_ + "." + a_.names.of(part); }

  const model::Architecture& a_;
  const SequenceValues& sequence_;
  GraphText& graph_;
  ModuleGraph& modules_;
  std::string path_;
};

}  // namespace wasmquant::conversion
