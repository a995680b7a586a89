// Follows names from nodes to what makes them, counts who still reads a value, and reads the edited model again.
#include "pipeline/stored/float_graph.h"

#include "core/message.h"

namespace wasmquant::conversion {
namespace {

using onnx::kNone;
using onnx::Node;
using onnx::Tensor;

/// Begins the location of decoded tensors, which no file has.
constexpr std::string_view kDecoded = "\x7F";

// A node's name without what tools append to that of the float node.
std::string_view float_name(std::string_view name) noexcept {
  for (const std::string_view suffix : {"_quant", "_Q4", "_Q8", "_Q2", "_reshape"})
    if (name.size() > suffix.size() && name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace

FloatGraph::FloatGraph(const onnx::Model& source)
    : model(source), editor(source), is_gone_(source.nodes.size()), is_kept_(source.tensors.size()) {
  for (const Node& node : source.nodes) reads_.push_back(node.reads);
}

uint32_t FloatGraph::maker(const NodeInput& at, std::string_view op_type) const noexcept {
  if (at.node == kNone || at.input >= model.nodes[at.node].origins.size()) return kNone;
  const uint32_t found = model.nodes[at.node].origins[at.input].node;
  if (found == kNone) return kNone;
  const Node& node = model.nodes[found];
  const bool is_it = node.op_type == op_type && node.domain.empty() && node.graph == model.nodes[at.node].graph;
  return is_it && !node.inputs.empty() ? found : kNone;
}

uint32_t FloatGraph::only_reader(uint32_t node, std::string_view op_type) const noexcept {
  if (node == kNone || model.nodes[node].reads != 1) return kNone;
  const uint32_t found = model.nodes[node].reader;
  if (found == kNone) return kNone;
  const Node& reader = model.nodes[found];
  const bool is_it = reader.op_type == op_type && reader.domain.empty() && reader.graph == model.nodes[node].graph;
  return is_it && reader.outputs.size() == 1 ? found : kNone;
}

uint32_t FloatGraph::constant(const NodeInput& at) const noexcept {
  if (at.node == kNone || at.input >= model.nodes[at.node].origins.size()) return kNone;
  const uint32_t found = model.nodes[at.node].origins[at.input].tensor;
  if (found == kNone) return kNone;
  const Tensor& tensor = model.tensors[found];
  const bool is_settable = tensor.input.bytes() > 0 && model.ir_version >= 4;
  const uint32_t bits = onnx::bits_of(tensor.data_type);
  const bool is_readable = tensor.encoding == onnx::Encoding::bytes ||
                           (tensor.encoding == onnx::Encoding::varints && bits != 0 && bits <= 8);
  return is_settable || !is_readable ? kNone : found;
}

std::string_view FloatGraph::name(const NodeInput& at) const noexcept {
  const bool is_given = at.node != kNone && at.input < model.nodes[at.node].inputs.size();
  return is_given ? model.nodes[at.node].inputs[at.input] : std::string_view();
}
bool FloatGraph::has(const NodeInput& at) const noexcept { return !name(at).empty(); }

std::optional<StoredParts> FloatGraph::parts(const NodeInput& codes, const NodeInput& scale,
                                             const NodeInput& zero_point) const {
  const StoredParts found{constant(codes), constant(scale), constant(zero_point)};
  const bool lacks_one = found.codes == kNone || found.scale == kNone || (has(zero_point) && found.zero_point == kNone);
  return lacks_one ? std::nullopt : std::optional(found);
}

std::string_view FloatGraph::read(const NodeInput& at) {
  if (!has(at)) return {};
  const onnx::Origin& origin = model.nodes[at.node].origins[at.input];
  if (origin.node != kNone) ++reads_[origin.node];
  if (origin.tensor != kNone) is_kept_[origin.tensor] = true;
  return name(at);
}

std::string FloatGraph::add(StoredOnnxWeight weight, std::string_view freed) {
  for (const StoredOnnxWeight& known : weights_)
    if (known.parts == weight.parts && known.layout == weight.layout) return known.name;
  if (weight.name != freed) weight.name = editor.fresh(weight.name, "");
  const Tensor& scale = model.tensors[weight.parts.scale];
  Pieces message = editor.literal(tensor_head(weight.name, scale.data_type, weight.shape));
  uint64_t bytes = onnx::bits_of(scale.data_type) / 8;
  for (const uint64_t d : weight.shape) bytes *= d;
  message.add(editor.literals, external_fields(text_of("{}{}", kDecoded, weights_.size()), 0, bytes));
  editor.add_initializer(model.tensors[weight.parts.codes].graph, message);
  weights_.push_back(std::move(weight));
  return weights_.back().name;
}

void FloatGraph::append(Pieces& to, std::string_view op_type, uint32_t after, const List<std::string_view>& inputs,
                        const List<std::string_view>& outputs, bool with_attributes) {
  NodeBytes node(op_type, "", float_name(model.nodes[after].name), "");
  for (const std::string_view input : inputs) node.input(input);
  for (const std::string_view output : outputs) node.output(output);
  Pieces message = editor.literal(node.bytes());
  if (with_attributes)
    for (const onnx::Attribute& attribute : model.nodes[after].attributes) message.add(attribute.whole);
  editor.append_node(to, message);
}

void FloatGraph::leave_out(uint32_t node) {
  is_gone_[node] = true;
  for (const onnx::Origin& origin : model.nodes[node].origins)
    if (origin.node != kNone) --reads_[origin.node];
}

void FloatGraph::replace(uint32_t node, Pieces pieces) {
  is_changed_ = true;
  editor.replace_node(node, std::move(pieces));
  leave_out(node);
}

Result<DequantizedModel> FloatGraph::finish() {
  DequantizedModel out;
  for (const std::string_view location : model.locations) is_changed_ = is_changed_ && !location.starts_with(kDecoded);
  out.is_changed = is_changed_;
  if (!is_changed_) return out;
  for (size_t n = model.nodes.size(); n-- > 0;) {  // readers come before what they read
    const auto node = static_cast<uint32_t>(n);
    if (is_gone_[node] || reads_[node] != 0 || model.nodes[node].reads == 0 || !model.nodes[node].graphs.empty())
      continue;
    editor.replace_node(node, {});
    leave_out(node);
  }
  for (size_t t = 0; t < model.tensors.size(); ++t) {
    const Tensor& tensor = model.tensors[t];
    bool is_read = is_kept_[t] || tensor.is_output || tensor.consumers.empty();
    for (const onnx::Consumer& consumer : tensor.consumers) is_read = is_read || !is_gone_[consumer.node];
    if (!is_read) editor.drop(tensor, {});
  }
  TRY(file, editor.apply());
  auto skeleton = std::make_unique<onnx::Skeleton>();
  for (const Segment& segment : file.segments()) {
    if (segment.kind == Segment::Kind::literal)
      skeleton->append(std::string_view(editor.literals).substr(segment.begin, segment.bytes));
    else
      skeleton->append(*model.skeleton, {segment.begin, segment.begin + segment.bytes});
  }
  TRY(changed, onnx::read_model(std::move(skeleton)));
  out.model = std::move(changed);
  out.weights = std::move(weights_);
  out.model.locations = model.locations;
  for (Tensor& tensor : out.model.tensors) {
    if (!tensor.location.starts_with(kDecoded)) continue;
    tensor.decoded = 0;
    for (const char digit : tensor.location.substr(kDecoded.size()))
      tensor.decoded = tensor.decoded * 10 + static_cast<uint32_t>(digit - '0');
    tensor.location = {};
    tensor.begin = tensor.end = 0;
  }
  return out;
}

}  // namespace wasmquant::conversion
