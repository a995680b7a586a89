// Finds the norms that can be folded, computes the new weights and biases, and edits the graph.
#include "onnx_graph/onnx_norms.h"

#include "core/order.h"
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_names.h"

namespace wasmquant::conversion {
namespace {

using onnx::kNone;
using onnx::Node;
using onnx::Tensor;
using onnx::Use;

// Inputs of BatchNormalization: X, then these.
constexpr uint32_t kFirstValue = 1, kValues = 4;
constexpr uint32_t kBias = 2;  // input of Conv, ConvTranspose and Gemm

bool is_norm(const Node& node) noexcept {
  return node.op_type == "BatchNormalization" && node.domain.empty() && node.graphs.empty();
}

bool is_inference(const Node& node) noexcept {
  if (node.inputs.size() != kFirstValue + kValues || node.outputs.empty() || node.outputs[0].empty()) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) return false;
  for (const onnx::Attribute& a : node.attributes) {
    const bool is_harmless = a.name == "epsilon" || a.name == "momentum" ||
                             (a.name == "training_mode" && a.integer == 0) || (a.name == "spatial" && a.integer == 1);
    if (!is_harmless) return false;
  }
  return true;
}

bool is_constant(const onnx::Model& model, const Tensor& tensor) noexcept {
  return onnx::weight_dtype_of(tensor.data_type) && tensor.encoding == onnx::Encoding::bytes &&
         (tensor.input.bytes() == 0 || model.ir_version < 4);
}

// [channels], or for Gemm also [1, channels].
bool is_vector(const Tensor& tensor, uint64_t channels, bool may_be_row) noexcept {
  const size_t rank = tensor.shape.size();
  return rank != 0 && tensor.shape.back() == channels &&
         (rank == 1 || (may_be_row && rank == 2 && tensor.shape[0] == 1));
}

bool is_plain_gemm(const Node& node) noexcept {
  const onnx::Attribute *alpha = node.find("alpha"), *beta = node.find("beta");
  return (alpha == nullptr || alpha->real == 1.0f) && (beta == nullptr || beta->real == 1.0f);
}

class Finder {
 public:
  explicit Finder(const onnx::Model& model) : model_(model) {}

  bool find(const OnnxModelWeight& listed, OnnxNorm& out) const {
    const Tensor& weight = model_.tensors[listed.tensor];
    if (listed.kept != nullptr || listed.is_input || weight.consumers.size() != 1 ||
        weight.encoding != onnx::Encoding::bytes)
      return false;
    const onnx::Consumer& consumer = weight.consumers[0];
    const Node& layer = model_.nodes[consumer.node];
    if (layer.outputs.size() != 1 || !set_channels(weight, consumer.use, layer, out)) return false;
    const uint32_t norm_node = layer.reader;
    if (layer.reads != 1 || norm_node == kNone) return false;
    const Node& norm = model_.nodes[norm_node];
    if (!is_norm(norm) || !is_inference(norm) || norm.graph != layer.graph || norm.inputs[0] != layer.outputs[0])
      return false;
    out.node = norm_node;
    out.layer = consumer.node;
    out.weight = listed.tensor;
    for (uint32_t v = 0; v < kValues; ++v) {
      out.values[v] = norm.origins[kFirstValue + v].tensor;
      if (!fits(out.values[v], out.channels, false)) return false;
    }
    if (const onnx::Attribute* epsilon = norm.find("epsilon")) out.epsilon = double{epsilon->real};
    const bool has_bias = layer.inputs.size() > kBias && !layer.inputs[kBias].empty();
    out.bias = has_bias ? layer.origins[kBias].tensor : kNone;
    return !has_bias || fits(out.bias, out.channels, consumer.use == Use::gemm);
  }

 private:
  static bool set_channels(const Tensor& weight, Use use, const Node& layer, OnnxNorm& out) {
    const std::vector<uint64_t>& shape = weight.shape;
    uint64_t elements = 1;
    for (const uint64_t d : shape) elements *= d;
    if (elements == 0 || shape.size() < 2) return false;
    out.repeat = elements;
    if (use == Use::conv || (use == Use::gemm && layer.integer_or("transB", 0) != 0)) {
      out.channels = out.cycle = shape[0];
    } else if (use == Use::gemm) {
      out.channels = out.cycle = shape[1];
    } else if (use == Use::conv_transpose) {  // [in, out / groups, ...]: a group's inputs are contiguous
      const int64_t given = layer.integer_or("group", 1);
      const auto groups = static_cast<uint64_t>(given);
      if (given < 1 || groups > shape[0] || shape[0] % groups != 0) return false;
      out.cycle = shape[1];
      out.channels = shape[1] * groups;
      out.repeat = elements / groups;
    }
    const bool is_row = use == Use::conv || (use == Use::gemm && layer.integer_or("transB", 0) != 0);
    out.inner = is_row ? elements / shape[0] : elements / shape[0] / shape[1];
    return use != Use::gemm ? out.channels != 0 : shape.size() == 2 && is_plain_gemm(layer);
  }

  bool fits(uint32_t tensor, uint64_t channels, bool may_be_row) const noexcept {
    return tensor != kNone && is_constant(model_, model_.tensors[tensor]) &&
           is_vector(model_.tensors[tensor], channels, may_be_row);
  }

  const onnx::Model& model_;
};

}  // namespace

List<OnnxNorm> foldable_norms(const onnx::Model& model, const List<OnnxModelWeight>& weights) {
  List<OnnxNorm> norms;
  if (count_norms(model) == 0) return norms;
  const Finder finder(model);
  OnnxNames names(model);
  for (const OnnxModelWeight& weight : weights) {
    OnnxNorm norm;
    if (!finder.find(weight, norm)) continue;
    std::string base(model.tensors[weight.tensor].name);
    norm.bias_name = names.fresh(base += "_folded_bias");
    norms.push_back(std::move(norm));
  }
  return norms;
}

uint32_t count_norms(const onnx::Model& model) noexcept {
  uint32_t count = 0;
  for (const Node& node : model.nodes) count += is_norm(node);
  return count;
}

onnx::Model without_norms(const onnx::Model& model, const List<OnnxNorm>& norms) {
  onnx::Model out = model;
  for (const OnnxNorm& norm : norms) {
    Node &layer = out.nodes[norm.layer], &gone = out.nodes[norm.node];
    layer.outputs[0] = gone.outputs[0];
    if (layer.inputs.size() <= kBias) layer.inputs.resize(kBias + 1);
    layer.inputs[kBias] = norm.bias_name;
    layer.origins.resize(layer.inputs.size());
    gone.inputs.clear();
    gone.origins.clear();
    gone.outputs.clear();
    gone.attributes.clear();
    out.names.push_back(norm.bias_name);
  }
  const List<std::string_view> names = out.names;
  const List<uint32_t> order = sorted_by_name(names.size(), [&](uint32_t i) { return names[i]; });
  for (size_t i = 0; i < order.size(); ++i) out.names[i] = names[order[i]];
  return out;
}

List<bool> needless_tensors(const onnx::Model& model, const List<OnnxNorm>& norms) {
  List<uint32_t> uses(model.tensors.size());
  for (const OnnxNorm& norm : norms) {
    for (const uint32_t value : norm.values) ++uses[value];
    if (norm.bias != kNone) ++uses[norm.bias];
  }
  List<bool> needless(uses.size());
  for (size_t t = 0; t < uses.size(); ++t)
    needless[t] = uses[t] != 0 && uses[t] == model.tensors[t].consumers.size() && !model.tensors[t].is_output;
  return needless;
}

void fold_norms(OnnxEditor& editor, std::span<const OnnxNorm> norms, const List<bool>& is_replaced) {
  for (const OnnxNorm& norm : norms) {
    const Tensor& weight = editor.model.tensors[norm.weight];
    const Node& layer = editor.model.nodes[norm.layer];
    editor.replace_node(norm.node, {});
    const uint64_t shape[] = {norm.channels};
    std::string bias = tensor_head(norm.bias_name, weight.data_type, shape);
    protobuf::append_field(bias, kRawData, norm.bias_bytes);
    editor.add_initializer(layer.graph, editor.literal(bias));
    if (is_replaced[norm.layer]) continue;
    Pieces node;
    editor.append_node(node, editor.renamed(layer, layer.inputs[0], layer.outputs[0]));
    editor.replace_node(norm.layer, std::move(node));
  }
}

}  // namespace wasmquant::conversion
