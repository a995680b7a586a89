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
  std::string layer(uint32_t number, const std::string& path, const std::string& x);

 private:
  struct Heads {
    std::string q, k, v;
  };
  std::string encoder_layer(const std::string& x);
  std::string attend(uint32_t number, const std::string& x);
  AttentionValues cache_of(uint32_t number);
  Heads project(const std::string& x);
  Heads split_heads(const std::string& x);
  std::string positioned(uint32_t number, const std::string& x, model::ModelPart norm, uint32_t heads);
  std::string head_norm(const std::string& x, model::ModelPart part, uint32_t heads);
  std::string feed_forward(const std::string& x);
  std::string added(const std::string& x, std::string change, model::ModelPart post_norm);
  std::string linear(const std::string& x, model::ModelPart part, uint64_t rows, uint64_t columns);
  std::string norm(const std::string& x, model::ModelPart part);
  std::string output(const std::string& attended);
  std::string path_of(model::ModelPart part) const { return path_ + "." + a_.names.of(part); }

  const model::Architecture& a_;
  const SequenceValues& sequence_;
  GraphText& graph_;
  ModuleGraph& modules_;
  std::string path_;
};

}  // namespace wasmquant::conversion
