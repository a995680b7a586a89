#include "onnx_conversion/transformer_graph.h"

#include <algorithm>

#include "core/message.h"
#include "onnx_conversion/layer_graph.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {
namespace {

using model::Architecture;
using model::ModelPart;

class TransformerGraph {
 public:
  TransformerGraph(const Architecture& architecture, bool says_tied, const StoredTensors& tensors)
      : a_(architecture), says_tied_(says_tied), weights_(tensors, graph_), modules_(a_, graph_, weights_) {}

  Result<std::string> run() {
    find_prefix();
    const std::string_view result = a_.is_encoder ? "last_hidden_state" : "logits";
    const GraphAxis axes[] = {{"batch_size"}, {"sequence_length"}, {"", a_.is_encoder ? a_.hidden : a_.vocabulary}};
    graph_.output(result, kFloat32, axes);
    const SequenceValues sequence = a_.is_encoder ? encoder_inputs(a_, graph_) : decoder_inputs(a_, graph_);
    Value x = embedded(sequence);
    LayerGraph layers(a_, sequence, graph_, modules_);
    for (uint32_t layer = 0; layer < a_.layers; ++layer)
      x = layers.layer(layer, text_of("{}{}{}", prefix_, a_.names.of(ModelPart::layers), layer), x);
    graph_.enter("output");
    const Value outputs[] = {result};
    graph_.node_to("Identity", "", {a_.is_encoder ? finished(x) : logits(x)}, outputs);
    if (!weights_.status()) return weights_.status().error();
    return graph_.finish(a_.family);
  }

 private:
  void find_prefix() {
    const List<std::string> prefixes = a_.names.prefixes();
    const auto found = std::find_if(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
      return weights_.has(prefix + a_.names.of(ModelPart::embedding) + ".weight");
    });
    prefix_ = found == prefixes.end() ? prefixes[0] : *found;
  }

  std::string module(ModelPart part) const { return prefix_ + a_.names.of(part); }

  Value table(ModelPart part, uint64_t rows) { return weights_(module(part) + ".weight", {rows, a_.hidden}); }

  Value embedded(const SequenceValues& sequence) {
    graph_.enter("embedding");
    const Value rows = graph_.node("Gather", {table(ModelPart::embedding, a_.vocabulary), "input_ids"});
    Value x = modules_.scaled(rows, a_.scales.embedding);
    if (a_.names.has(ModelPart::positions)) {
      const uint64_t positions = uint64_t{a_.first_position} + a_.max_positions;
      x = graph_.node("Add", {x, graph_.node("Gather", {table(ModelPart::positions, positions), sequence.places})});
    }
    if (a_.names.has(ModelPart::types)) {
      const Value type = a_.token_types > 1 ? Value("token_type_ids") : graph_.integer(0);
      x = graph_.node("Add", {x, graph_.node("Gather", {table(ModelPart::types, a_.token_types), type})});
    }
    if (!a_.names.has(ModelPart::embedding_norm)) return x;
    return modules_.norm(x, module(ModelPart::embedding_norm), ModelPart::embedding_norm, a_.hidden);
  }

  Value finished(Value x) {
    if (!a_.names.has(ModelPart::final_norm)) return x;
    return modules_.norm(x, module(ModelPart::final_norm), ModelPart::final_norm, a_.hidden);
  }

  Value logits(Value x) {
    const Value normed = finished(x);
    const std::string& head = a_.names.of(ModelPart::head);
    const bool is_tied = a_.tied_head || (!says_tied_ && !weights_.has(head + ".weight"));
    const Value matrix =
        is_tied ? table(ModelPart::embedding, a_.vocabulary) : weights_(head + ".weight", {a_.vocabulary, a_.hidden});
    Value y = modules_.product(normed, matrix);
    if (a_.names.has_bias(ModelPart::head)) y = graph_.node("Add", {y, weights_(head + ".bias", {a_.vocabulary})});
    return modules_.capped(modules_.scaled(y, a_.scales.logits), a_.scales.logit_cap);
  }

  const Architecture& a_;
  const bool says_tied_;
  GraphText graph_;
  StoredWeights weights_;
  ModuleGraph modules_;
  std::string prefix_;
};

}  // namespace

std::string_view unbuilt_part(const Architecture& a) noexcept {
  if (!a.mixers.empty()) return "layers that are no attention (convolutions, state spaces, delta nets)";
  if (a.routing.experts > 0) return "mixtures of experts";
  if (a.latent.rank > 0) return "latent attention";
  if (a.gated_attention) return "gated attention";
  if (!a.sizes.empty()) return "layers of several sizes, or that share keys";
  if (a.layer_inputs.width > 0) return "inputs of each layer";
  if (a.names.has(ModelPart::v_norm)) return "normed values";
  if (a.names.has(ModelPart::layer_scale)) return "layers that scale the stream";
  if (a.rope.scaling == model::Rope::Scaling::proportional) return "proportional rotations";
  if (a.is_chunked) return "attention in chunks";
  if (a.query_growth.is_unrotated) return "queries that grow in layers without rotation";
  if (a.names.has(ModelPart::activation)) return "learned activations";
  if (a.names.has(ModelPart::sinks)) return "attention sinks";
  if (a.relative.buckets > 0 || (a.has_slopes && a.is_encoder)) return "attention biases by distance";
  if (a.rotated_down_input) return "rotated inputs of layers";
  return {};
}

Result<std::string> transformer_graph(const Architecture& architecture, bool says_tied, const StoredTensors& tensors) {
  return TransformerGraph(architecture, says_tied, tensors).run();
}

}  // namespace wasmquant::conversion
