#include "conversion/onnx_rewrite.h"

#include <algorithm>

#include "conversion/onnx_edits.h"
#include "conversion/onnx_names.h"
#include "conversion/onnx_opset.h"
#include "conversion/onnx_weights.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/protobuf.h"

namespace wasmquant::conversion {
namespace {

using onnx::Consumer;
using onnx::DataType;
using onnx::Node;
using onnx::Range;
using onnx::Tensor;
using onnx::Use;

constexpr std::string_view kMicrosoft = "com.microsoft";
// Of GraphProto and ModelProto.
constexpr uint32_t kNode = 1, kInitializer = 5, kOpsetImport = 8, kRawData = 9;
/// Smaller tensors stay in the model: readers want shapes and scalars there.
constexpr uint64_t kLeastExternal = 1024;
/// Where data begin in an external file, so that it can be mapped.
constexpr uint64_t kPage = 4096;

uint32_t number_of(DataType type) { return static_cast<uint32_t>(type); }

uint32_t type_of(const OnnxChoice& choice, const Component& component) {
  const bool is_float = component.role == Role::scale;
  if (is_float && component.dtype == StorageDtype::F16) return number_of(DataType::float16);
  if (is_float && component.dtype == StorageDtype::BF16) return number_of(DataType::bfloat16);
  if (is_float) return number_of(DataType::float32);
  const bool is_signed = component.dtype == StorageDtype::I8;
  if (choice.form == OnnxForm::dequantize_linear && choice.layout->bits == 4)
    return number_of(is_signed ? DataType::int4 : DataType::uint4);
  if (choice.form == OnnxForm::dequantize_linear && choice.layout->bits == 2)
    return number_of(is_signed ? DataType::int2 : DataType::uint2);
  return number_of(is_signed ? DataType::int8 : DataType::uint8);
}

class Rewriter {
 public:
  Rewriter(const onnx::Model& model, std::span<const OnnxChoice> choices, const OnnxOptions& options,
           DiagnosticList& diagnostics)
      : model_(model),
        choices_(choices),
        options_(options),
        diagnostics_(diagnostics),
        edits_(*model.skeleton),
        names_(model) {}

  Result<OnnxRewrite> run() {
    is_external_ = estimated_bytes() > options_.largest_model;
    if (is_external_ && !onnx::is_inside_folder(options_.data_file))
      return error_at(ErrorCode::argument_invalid, "data_file",
                      "the model takes more than {} bytes and needs a file for external data", options_.largest_model);
    TRY_VOID(set_opsets());
    find_quantized_inputs();
    List<bool> is_chosen(model_.tensors.size());
    for (uint32_t c = 0; c < choices_.size(); ++c) {
      is_chosen[choices_[c].tensor] = true;
      TRY_VOID(rewrite(c));
    }
    for (uint32_t t = 0; t < model_.tensors.size(); ++t)
      if (!is_chosen[t]) keep(model_.tensors[t]);
    const Pieces file = edits_.apply(out_.literals);
    if (file.bytes() > onnx::kMaxMessageBytes)
      return error_at(ErrorCode::format_unsupported, "", "the model takes {} bytes, readers refuse more than {}",
                      file.bytes(), onnx::kMaxMessageBytes);
    out_.model = {file.segments(), file.bytes()};
    out_.data = {data_.segments(), data_.bytes()};
    return std::move(out_);
  }

 private:
  // With everything inside.
  uint64_t estimated_bytes() const {
    uint64_t bytes = model_.skeleton->file_bytes();
    for (const Tensor& tensor : model_.tensors)
      if (tensor.is_external()) bytes += tensor.end - tensor.begin;
    for (const OnnxChoice& choice : choices_) {
      const Tensor& tensor = model_.tensors[choice.tensor];
      bytes -= tensor.end - tensor.begin;
      for (const Component& component : choice.layout->components) bytes += component.bytes;
    }
    return bytes;
  }

  Status set_opsets() {
    uint32_t needed = options_.least_opset;
    bool needs_microsoft = false;
    for (const OnnxChoice& choice : choices_) {
      needed = std::max(needed, onnx_opset_of(choice.form, *choice.layout));
      needs_microsoft =
          needs_microsoft || choice.form == OnnxForm::mat_mul_n_bits || choice.form == OnnxForm::gather_block_quantized;
    }
    TRY(inputs, raise_opset(model_, needed));
    for (size_t first = 0, next = 0; first < inputs.size(); first = next) {
      while (next < inputs.size() && inputs[next].node == inputs[first].node) ++next;
      if (inputs[first].attribute == onnx::kNone)
        flatten(model_.nodes[inputs[first].node], inputs[first].node);
      else
        raise_node(std::span(inputs.data(), inputs.size()).subspan(first, next - first));
    }
    out_.opset = static_cast<uint32_t>(std::max<uint64_t>(model_.opset(), needed));
    for (const onnx::OpsetImport& import : model_.opsets) {
      if (import.domain == kMicrosoft) needs_microsoft = false;
      if (import.domain.empty() && import.version < needed) {
        edits_.replace(import.whole, opset_import("", needed));
        diagnostics_.add({Severity::note, "opset-raised", "opset_import",
                          text_of("the model's operators are now those of version {}, they were of version {}", needed,
                                  import.version),
                          ""});
        const uint32_t ir_version = ir_version_of(needed);
        if (model_.ir_version >= 4 && model_.ir_version < ir_version) {
          std::string field;
          protobuf::append_field(field, 1, uint64_t{ir_version});
          edits_.replace(model_.ir_version_field, literal(field));
        }
      }
    }
    if (needs_microsoft) insert(model_.graphs[0].whole.begin, opset_import(kMicrosoft, 1));
    return {};
  }

  // The node without these attributes, and with inputs instead.
  void raise_node(std::span<const AttributeInput> raised) {
    const Node& node = model_.nodes[raised[0].node];
    List<std::string> inputs(node.inputs.begin(), node.inputs.end());
    Pieces message;
    for (onnx::Fields f(*model_.skeleton, model_.skeleton->field(node.whole.begin).payload); f.next();) {
      bool stays = f.field.number != 1;
      for (const AttributeInput& input : raised)
        stays = stays && node.attributes[input.attribute].whole.begin != f.field.whole.begin;
      if (stays) message.add(f.field.whole);
    }
    for (const AttributeInput& input : raised) {
      const std::string name = fresh(text_of("{}_{}", node.outputs[0], node.attributes[input.attribute].name));
      const uint64_t count[] = {input.values.size() / sizeof(int64_t)};
      std::string tensor = input.is_real ? tensor_head(name, number_of(DataType::float32), {})
                                         : tensor_head(name, number_of(DataType::int64), count);
      protobuf::append_field(tensor, kRawData, input.values);
      add_initializer(node.graph, literal(tensor));
      if (inputs.size() <= input.input) inputs.resize(input.input + 1);
      inputs[input.input] = name;
    }
    std::string fields;
    for (const std::string& input : inputs) protobuf::append_field(fields, 1, input);
    message.add(out_.literals, fields);
    Pieces pieces;
    pieces.add_field(out_.literals, kNode, message);
    replace_node(raised[0].node, std::move(pieces));
  }

  // Softmax over all dimensions from its axis on, as it was before version 13.
  void flatten(const Node& node, uint32_t index) {
    const onnx::Attribute* axis = node.find("axis");
    const std::string shape = fresh(text_of("{}_shape", node.outputs[0])),
                      matrix = fresh(text_of("{}_matrix", node.outputs[0])),
                      result = fresh(text_of("{}_flat", node.outputs[0]));
    Pieces nodes;
    append_node(nodes, NodeBytes("Shape", "", text_of("{}_shape", node.name)).input(node.inputs[0]).output(shape));
    append_node(nodes, NodeBytes("Flatten", "", text_of("{}_flatten", node.name))
                           .input(node.inputs[0])
                           .output(matrix)
                           .attribute("axis", axis == nullptr ? 1 : axis->integer));
    append_node(nodes, NodeBytes(node.op_type, "", node.name).input(matrix).output(result).attribute("axis", 1));
    append_node(
        nodes,
        NodeBytes("Reshape", "", text_of("{}_reshape", node.name)).input(result).input(shape).output(node.outputs[0]));
    replace_node(index, std::move(nodes));
  }

  Pieces opset_import(std::string_view domain, uint64_t version) {
    std::string import, field;
    protobuf::append_field(import, 1, domain);
    protobuf::append_field(import, 2, version);
    protobuf::append_field(field, kOpsetImport, import);
    return literal(field);
  }

  Pieces literal(std::string_view text) {
    Pieces pieces;
    pieces.add(out_.literals, text);
    return pieces;
  }
  void insert(uint64_t at, Pieces pieces) { edits_.replace({at, at}, std::move(pieces)); }

  // All messages around what stands in a graph.
  void open_graph(uint32_t index) {
    for (;;) {
      const onnx::Graph& graph = model_.graphs[index];
      edits_.open(graph.whole);
      if (graph.parent == onnx::kNone) return;
      edits_.open(graph.attribute);
      edits_.open(model_.nodes[graph.parent_node].whole);
      index = graph.parent;
    }
  }
  void add_to_graph(uint32_t graph, uint32_t field, const Pieces& message) {
    open_graph(graph);
    Pieces pieces;
    pieces.add_field(out_.literals, field, message);
    insert(model_.graphs[graph].message.begin, std::move(pieces));
  }
  void add_initializer(uint32_t graph, const Pieces& tensor) { add_to_graph(graph, kInitializer, tensor); }
  void replace_node(uint32_t node, Pieces pieces) {
    open_graph(model_.nodes[node].graph);
    edits_.replace(model_.nodes[node].whole, std::move(pieces));
    ++out_.replaced;
  }
  void append_node(Pieces& to, const NodeBytes& node) { to.add_field(out_.literals, kNode, literal(node.bytes())); }

  std::string fresh(std::string name) { return names_.fresh(std::move(name)); }

  // ---- where values lie

  // Values that are `segment`, as fields of a TensorProto.
  void add_values(Pieces& tensor, const Segment& segment) {
    if (is_external_ && segment.bytes >= kLeastExternal) {
      const uint64_t begin = (data_.bytes() + kPage - 1) / kPage * kPage;
      data_.add({Segment::Kind::zeros, 0, 0, data_.bytes(), begin - data_.bytes()});
      data_.add(segment);
      tensor.add(out_.literals, external_fields(options_.data_file, begin, segment.bytes));
      return;
    }
    std::string head;
    protobuf::append_head(head, kRawData, segment.bytes);
    tensor.add(out_.literals, head);
    tensor.add(segment);
  }

  // A tensor that is not quantized: its values move when they are in an external file, or are to be.
  void keep(const Tensor& tensor) {
    const uint64_t bytes = tensor.end - tensor.begin;
    const bool moves_out = is_external_ && tensor.encoding == onnx::Encoding::bytes && bytes >= kLeastExternal;
    if (!tensor.is_external() && !moves_out) return;
    Segment segment{Segment::Kind::model, 0, 0, tensor.begin, bytes};
    if (tensor.is_external()) {
      segment.kind = Segment::Kind::external;
      const auto& all = model_.locations;
      segment.source = static_cast<uint32_t>(std::find(all.begin(), all.end(), tensor.location) - all.begin());
    }
    open_graph(tensor.graph);
    if (tensor.node != onnx::kNone) {
      edits_.open(model_.nodes[tensor.node].whole);
      edits_.open(model_.nodes[tensor.node].find("value")->whole);
    }
    edits_.open(tensor.whole);
    Pieces values;
    add_values(values, segment);
    insert(tensor.message.begin, std::move(values));
    for (const Range& field : tensor.data) edits_.replace(field, {});
  }

  void drop(const Tensor& tensor, Pieces instead) {
    open_graph(tensor.graph);
    edits_.replace(tensor.node == onnx::kNone ? tensor.whole : model_.nodes[tensor.node].whole, std::move(instead));
    if (!tensor.is_input) return;
    for (const onnx::Input& input : model_.graphs[tensor.graph].inputs)
      if (input.name == tensor.name) edits_.replace(input.whole, {});
  }

  // ---- weights

  // Adds the components of a choice to its graph; their names, in order.
  List<std::string> add_components(uint32_t index) {
    const OnnxChoice& choice = choices_[index];
    const Tensor& tensor = model_.tensors[choice.tensor];
    List<std::string> names;
    for (uint32_t c = 0; c < choice.layout->components.size(); ++c) {
      const Component& component = choice.layout->components[c];
      names.push_back(fresh(component.name));
      Pieces message;
      message.add(out_.literals, tensor_head(names.back(), type_of(choice, component), component.shape));
      add_values(message, {Segment::Kind::component, index, c, 0, component.bytes});
      add_initializer(tensor.graph, message);
    }
    return names;
  }

  Status rewrite(uint32_t index) {
    const OnnxChoice& choice = choices_[index];
    const Tensor& tensor = model_.tensors[choice.tensor];
    const List<std::string> names = add_components(index);
    if (choice.form == OnnxForm::dequantize_linear) {
      dequantize(choice, tensor, names);
      return {};
    }
    bool is_needed = false;
    uint32_t replaced = 0;
    for (const Consumer& consumer : tensor.consumers) {
      if (!takes_form(model_, consumer, choice.form)) {
        is_needed = true;
        continue;
      }
      ++replaced;
      const Node& node = model_.nodes[consumer.node];
      Pieces nodes;
      if (choice.form == OnnxForm::mat_mul_n_bits)
        multiply(choice, node, names, nodes);
      else if (choice.form == OnnxForm::gather_block_quantized)
        gather(choice, node, names, nodes);
      else
        multiply_integers(consumer, tensor, names, nodes);
      replace_node(consumer.node, std::move(nodes));
    }
    if (replaced == 0)
      return error_at(ErrorCode::argument_invalid, tensor.name, "no node can take it as {} does", name_of(choice.form));
    if (!is_needed) {
      drop(tensor, {});
      return {};
    }
    diagnostics_.add({Severity::warning, "weight-kept-twice", std::string(tensor.name),
                      "other nodes need this weight as it was, so it is in the model twice", ""});
    keep(tensor);
    return {};
  }

  void dequantize(const OnnxChoice& choice, const Tensor& tensor, const List<std::string>& names) {
    const QuantizationSpec& spec = choice.layout->spec;
    NodeBytes node("DequantizeLinear", "", text_of("{}_DequantizeLinear", tensor.name));
    for (const std::string& name : names) node.input(name);
    node.output(tensor.name);
    if (spec.qscheme != QScheme::per_tensor) node.attribute("axis", spec.ch_axis);
    if (spec.qscheme == QScheme::per_group)
      node.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
    Pieces pieces;
    append_node(pieces, node);
    if (tensor.node != onnx::kNone) return drop(tensor, std::move(pieces));
    drop(tensor, {});
    insert(model_.graphs[tensor.graph].message.begin, std::move(pieces));
  }

  // name of the product, before a bias that Gemm or Conv add
  std::string product_name(const Node& node) {
    const bool has_bias = node.op_type != "MatMul" && node.inputs.size() > 2 && !node.inputs[2].empty();
    return has_bias ? fresh(text_of("{}_product", node.outputs[0])) : std::string(node.outputs[0]);
  }
  // `bias` empty: there is none
  void add_bias(const Node& node, std::string_view product, std::string_view bias, Pieces& nodes) {
    if (product == node.outputs[0]) return;
    NodeBytes add("Add", "", text_of("{}_bias", node.name));
    add.input(product).input(bias).output(node.outputs[0]);
    append_node(nodes, add);
  }

  void multiply(const OnnxChoice& choice, const Node& node, const List<std::string>& names, Pieces& nodes) {
    const WeightLayout& layout = *choice.layout;
    const std::string product = product_name(node);
    NodeBytes out("MatMulNBits", kMicrosoft, text_of("{}_Q{}", node.name, uint32_t{layout.bits}));
    out.input(node.inputs[0]);
    for (const std::string& name : names) out.input(name);
    out.output(product);
    out.attribute("K", static_cast<int64_t>(layout.columns));
    out.attribute("N", static_cast<int64_t>(layout.rows));
    out.attribute("bits", layout.bits);
    out.attribute("block_size", static_cast<int64_t>(layout.granularity.block));
    if (options_.accuracy_level != 0) out.attribute("accuracy_level", options_.accuracy_level);
    append_node(nodes, out);
    if (product != node.outputs[0]) add_bias(node, product, node.inputs[2], nodes);
  }

  void gather(const OnnxChoice& choice, const Node& node, const List<std::string>& names, Pieces& nodes) {
    NodeBytes out("GatherBlockQuantized", kMicrosoft, text_of("{}_Q4", node.name));
    out.input(names[0]).input(node.inputs[1]);
    for (size_t i = 1; i < names.size(); ++i) out.input(names[i]);
    out.output(node.outputs[0]);
    out.attribute("bits", choice.layout->bits);
    out.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
    out.attribute("gather_axis", 0).attribute("quantize_axis", 1);
    append_node(nodes, out);
  }

  // ---- integer operators

  // An input that nodes of one graph share is quantized once, before the first of them.
  struct QuantizedInput {
    std::string_view name;
    uint32_t graph, node;
    std::string codes, scale, zero_point;  // names; of the first node only
  };
  void find_quantized_inputs() {
    for (const OnnxChoice& choice : choices_) {
      if (choice.form != OnnxForm::integer_operator) continue;
      for (const Consumer& consumer : model_.tensors[choice.tensor].consumers)
        if (takes_form(model_, consumer, choice.form)) {
          const Node& node = model_.nodes[consumer.node];
          inputs_.push_back({node.inputs[0], node.graph, consumer.node, {}, {}, {}});
        }
    }
    input_order_ = sorted_order(inputs_.size(), [&](uint32_t a, uint32_t b) {
      const QuantizedInput &left = inputs_[a], &right = inputs_[b];
      if (left.name != right.name) return left.name < right.name;
      if (left.graph != right.graph) return left.graph < right.graph;
      return left.node < right.node;
    });
  }
  // The first node that uses the node's input.
  QuantizedInput& first_use(const Node& node) {
    const auto less = [&](uint32_t i) {
      const QuantizedInput& here = inputs_[i];
      return here.name < node.inputs[0] || (here.name == node.inputs[0] && here.graph < node.graph);
    };
    size_t low = 0, high = input_order_.size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (less(input_order_[middle]))
        low = middle + 1;
      else
        high = middle;
    }
    QuantizedInput& first = inputs_[input_order_[low]];
    if (first.codes.empty()) {
      first.codes = fresh(text_of("{}_quantized", first.name));
      first.scale = fresh(text_of("{}_scale", first.name));
      first.zero_point = fresh(text_of("{}_zero_point", first.name));
    }
    return first;
  }

  //   A -> DynamicQuantizeLinear -> codes, scale, zero point
  //   Y = Cast(MatMulInteger(codes, X_quantized, zero point, X_zero_point)) * (scale * X_scale) + bias
  void multiply_integers(const Consumer& consumer, const Tensor& weight, const List<std::string>& names,
                         Pieces& nodes) {
    const Node& node = model_.nodes[consumer.node];
    const std::string_view output = node.outputs[0];
    const auto of_output = [&](const char* suffix) { return fresh(text_of("{}{}", output, suffix)); };
    const QuantizedInput& input = first_use(node);
    if (input.node == consumer.node) {
      NodeBytes quantize("DynamicQuantizeLinear", "", text_of("{}_QuantizeLinear", input.codes));
      quantize.input(input.name).output(input.codes).output(input.scale).output(input.zero_point);
      append_node(nodes, quantize);
    }
    const bool is_conv = consumer.use == Use::conv;
    const std::string sum = of_output("_output_quantized"), real = of_output("_output_cast"),
                      scales = of_output("_output_scale"), product = product_name(node);
    NodeBytes integer(is_conv ? "ConvInteger" : "MatMulInteger", "", text_of("{}_quant", node.name));
    integer.input(input.codes).input(names[0]).input(input.zero_point);
    if (names.size() > 2) integer.input(names[2]);
    integer.output(sum);
    Pieces message = literal(integer.bytes());
    if (is_conv)
      for (const onnx::Attribute& attribute : node.attributes) message.add(attribute.whole);
    nodes.add_field(out_.literals, kNode, message);

    NodeBytes cast("Cast", "", text_of("{}_output_cast", node.name));
    cast.input(sum).output(real).attribute("to", static_cast<int64_t>(DataType::float32));
    append_node(nodes, cast);
    NodeBytes multiply_scales("Mul", "", text_of("{}_scales_mul", node.name));
    multiply_scales.input(input.scale).input(names[1]).output(scales);
    append_node(nodes, multiply_scales);
    NodeBytes multiply_output("Mul", "", text_of("{}_output_mul", node.name));
    multiply_output.input(real).input(scales).output(product);
    append_node(nodes, multiply_output);
    if (product == output) return;
    add_bias(node, product, is_conv ? reshaped_bias(node, weight.shape.size() - 1, nodes) : std::string(node.inputs[2]),
             nodes);
  }

  // A convolution's bias [M] as [M, 1, …].
  std::string reshaped_bias(const Node& node, size_t rank, Pieces& nodes) {
    const std::string shape = fresh(text_of("{}_bias_shape", node.outputs[0]));
    const std::string bias = fresh(text_of("{}_bias_reshaped", node.outputs[0]));
    std::string values(8, '\xff');  // -1
    for (size_t d = 1; d < rank; ++d) values += std::string("\1\0\0\0\0\0\0\0", 8);
    const uint64_t dimensions[] = {rank};
    std::string tensor = tensor_head(shape, number_of(DataType::int64), dimensions);
    protobuf::append_field(tensor, kRawData, values);
    add_initializer(node.graph, literal(tensor));
    NodeBytes reshape("Reshape", "", text_of("{}_bias_reshape", node.name));
    reshape.input(node.inputs[2]).input(shape).output(bias);
    append_node(nodes, reshape);
    return bias;
  }

  const onnx::Model& model_;
  const std::span<const OnnxChoice> choices_;
  const OnnxOptions& options_;
  DiagnosticList& diagnostics_;
  Edits edits_;
  OnnxNames names_;
  OnnxRewrite out_;
  Pieces data_;
  bool is_external_ = false;
  List<QuantizedInput> inputs_;
  List<uint32_t> input_order_;
};

}  // namespace

Result<OnnxRewrite> rewrite_onnx(const onnx::Model& model, std::span<const OnnxChoice> choices,
                                 const OnnxOptions& options, DiagnosticList& diagnostics) {
  return Rewriter(model, choices, options, diagnostics).run();
}

}  // namespace wasmquant::conversion
