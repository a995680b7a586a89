// Each operator on codes, and what takes its place.
#include "pipeline/stored/onnx_dequantize.h"

#include "formats/onnx/onnx_views.h"
#include "pipeline/stored/gathered_codes.h"

namespace wasmquant::conversion {
namespace {

using onnx::DataType;
using onnx::kNone;
using onnx::Node;
using Names = List<std::string_view>;

bool is_of_type(const onnx::Model& model, uint32_t tensor, DataType type) noexcept {
  return tensor != kNone && model.tensors[tensor].data_type == static_cast<uint32_t>(type);
}

class Dequantizer {
 public:
  explicit Dequantizer(const onnx::Model& model) : model_(model), graph_(model) {}

  Result<DequantizedModel> run() {
    for (uint32_t n = 0; n < model_.nodes.size(); ++n) dequantize(n);
    return graph_.finish();
  }

 private:
  void dequantize(uint32_t n) {
    const Node& node = model_.nodes[n];
    if (node.inputs.empty() || node.outputs.empty() || node.outputs[0].empty() || !node.graphs.empty()) return;
    constexpr uint8_t kStandard = 1, kMicrosoftOwn = 2;
    struct Row {
      std::string_view op_type;
      uint8_t domains;
      void (Dequantizer::*replace)(uint32_t);
    };
    static constexpr Row kRows[] = {
        {"DequantizeLinear", kStandard | kMicrosoftOwn, &Dequantizer::linear},
        {"Mul", kStandard, &Dequantizer::product_of_codes},
        {"Reshape", kStandard, &Dequantizer::rows_of_codes},
        {"MatMulInteger", kStandard, &Dequantizer::integers},
        {"ConvInteger", kStandard, &Dequantizer::integers},
        {"QLinearMatMul", kStandard, &Dequantizer::static_integers},
        {"QLinearConv", kStandard, &Dequantizer::static_integers},
        {"QGemm", kMicrosoftOwn, &Dequantizer::static_integers},
        {"MatMulNBits", kMicrosoftOwn, &Dequantizer::blocks},
        {"GatherBlockQuantized", kMicrosoftOwn, &Dequantizer::rows_of_blocks},
        {"DynamicQuantizeMatMul", kMicrosoftOwn, &Dequantizer::dynamic_product},
        {"DynamicQuantizeLSTM", kMicrosoftOwn, &Dequantizer::recurrent},
    };
    const uint8_t domain = node.domain.empty() ? kStandard : node.domain == kMicrosoft ? kMicrosoftOwn : uint8_t{0};
    for (const Row& row : kRows)
      if ((row.domains & domain) != 0 && row.op_type == node.op_type) return (this->*row.replace)(n);
  }

  std::optional<StoredOnnxWeight> find(const NodeInput& codes, const NodeInput& scale, const NodeInput& zero_point,
                                       int64_t axis, OnnxForm form, int64_t block_size = 0) const {
    const auto parts = graph_.parts(codes, scale, zero_point);
    auto found = parts ? find_linear(model_, *parts, axis, block_size) : std::nullopt;
    if (found) found->form = form;
    return found;
  }

  // A tensor instead of the node that gave its values.
  void give(uint32_t n, StoredOnnxWeight found) {
    const std::string_view output = model_.nodes[n].outputs[0];
    const std::string name = graph_.add(std::move(found), output);
    Pieces pieces;
    if (name != output) graph_.append(pieces, "Identity", n, {name}, {output});
    graph_.replace(n, std::move(pieces));
  }

  // ---- values

  void linear(uint32_t n) {
    const Node& node = model_.nodes[n];
    auto found = find({n, 0}, {n, 1}, {n, 2}, node.integer_or("axis", 1), OnnxForm::dequantize_linear,
                      node.integer_or("block_size", 0));
    if (!found) return rounded(n);
    const int64_t type = node.integer_or("output_dtype", 0);
    if (type == 0 || type == int64_t{model_.tensors[found->parts.scale].data_type}) give(n, std::move(*found));
  }

  // Of gathered rows, or of a float constant that QuantizeLinear rounds.
  void rounded(uint32_t n) {
    const std::string_view output = model_.nodes[n].outputs[0];
    Pieces pieces;
    if (!append_rows({n, 0}, {n, 1}, {n, 2}, output, pieces)) {
      uint32_t quantizer = kNone;
      const uint32_t origin = model_.nodes[n].origins[0].node;
      if (origin != kNone && model_.nodes[origin].op_type == "QuantizeLinear") quantizer = origin;
      const uint32_t values = graph_.constant({quantizer, 0});
      if (values == kNone || model_.tensors[values].shape.size() < 2 ||
          graph_.name({quantizer, 1}) != graph_.name({n, 1}))
        return;
      graph_.append(pieces, "Identity", n, {graph_.read({quantizer, 0})}, {output});
    }
    graph_.replace(n, std::move(pieces));
  }

  void product_of_codes(uint32_t n) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const NodeInput scale{n, 1 - i};
      const uint32_t difference = graph_.maker({n, i}, "Sub");
      const uint32_t cast = graph_.maker(difference == kNone ? NodeInput{n, i} : NodeInput{difference, 0}, "Cast");
      const uint32_t zero_point = graph_.maker({difference, 1}, "Cast"), factor = graph_.constant(scale);
      if (cast == kNone || factor == kNone || (difference != kNone && zero_point == kNone)) continue;
      const onnx::Tensor& tensor = model_.tensors[factor];
      const uint32_t codes = graph_.constant({cast, 0});
      if (codes == kNone || model_.nodes[cast].integer_or("to", 0) != int64_t{tensor.data_type}) continue;
      const auto axis = axis_of(tensor.shape, model_.tensors[codes].shape.size());
      auto found = axis ? find({cast, 0}, scale, {zero_point, 0}, *axis, OnnxForm::cast_and_scale) : std::nullopt;
      if (found) return give(n, std::move(*found));
    }
  }

  // The axis along which a factor of this shape differs, if it is one.
  static std::optional<int64_t> axis_of(const std::vector<uint64_t>& shape, size_t rank) {
    if (shape.size() > rank) return std::nullopt;
    std::optional<int64_t> axis;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      if (axis) return std::nullopt;
      axis = static_cast<int64_t>(d + rank - shape.size());
    }
    return axis ? axis : 0;
  }

  // ---- rows

  // Gather of codes with one scale: the rows are those of the float table.
  bool append_rows(const NodeInput& codes, const NodeInput& scale, const NodeInput& zero_point, std::string_view output,
                   Pieces& to) {
    const uint32_t gather = graph_.maker(codes, "Gather");
    if (gather == kNone) return false;
    auto found = find({gather, 0}, scale, zero_point, 0, OnnxForm::gather_rows);
    if (!found || found->layout.spec.qscheme != QScheme::per_tensor) return false;
    const std::string table = graph_.add(std::move(*found));
    graph_.append(to, "Gather", gather, {table, graph_.read({gather, 1})}, {output}, true);
    return true;
  }

  void rows_of_codes(uint32_t n) {
    auto found = find_gathered(graph_, n);
    if (found) append_gather(n, std::move(found->weight), found->indices);
  }

  void rows_of_blocks(uint32_t n) {
    const Node& node = model_.nodes[n];
    const auto parts = graph_.parts({n, 0}, {n, 2}, {n, 3});
    const int64_t axis = node.integer_or("quantize_axis", 1), size = node.integer_or("block_size", 128);
    if (!parts || node.integer_or("gather_axis", 0) != 0 || size <= 0) return;
    const std::vector<uint64_t>& shape = model_.tensors[parts->codes].shape;
    const auto bits = static_cast<uint64_t>(node.integer_or("bits", 4));
    const bool is_bytes = is_of_type(model_, parts->codes, DataType::uint8);
    if (is_bytes && (shape.size() != 2 || axis != 1 || bits == 0)) return;
    auto found = is_bytes
                     ? find_blocks(model_, *parts, {shape[0], shape[1] * 8 / bits, bits, static_cast<uint64_t>(size)})
                     : find_linear(model_, *parts, axis, size);
    if (found) append_gather(n, std::move(*found), {n, 1});
  }

  void append_gather(uint32_t n, StoredOnnxWeight found, const NodeInput& indices) {
    const std::string table = graph_.add(std::move(found));
    Pieces pieces;
    graph_.append(pieces, "Gather", n, {table, graph_.read(indices)}, {model_.nodes[n].outputs[0]});
    graph_.replace(n, std::move(pieces));
  }

  // ---- products

  // Y = the operator of A and the weight, + bias; its name stays free for a bias.
  void multiply(uint32_t n, std::string_view op_type, std::string_view a, std::string_view weight,
                const NodeInput& bias, std::string_view output, Pieces& pieces) {
    const std::string product = graph_.has(bias) ? graph_.editor.fresh(output, "_product") : std::string(output);
    graph_.append(pieces, op_type, n, {a, weight}, {product}, op_type == "Conv");
    if (graph_.has(bias))
      graph_.editor.append_node(pieces, "Add", model_.nodes[n], "_bias", {product, graph_.read(bias)}, {output});
  }

  void blocks(uint32_t n) {
    const Node& node = model_.nodes[n];
    const auto parts = graph_.parts({n, 1}, {n, 2}, {n, 3});
    const int64_t rows = node.integer_or("N", 0), columns = node.integer_or("K", 0);
    const int64_t bits = node.integer_or("bits", 4), size = node.integer_or("block_size", 0);
    if (!parts || rows <= 0 || columns <= 0 || bits <= 0 || size <= 0 || graph_.has({n, 4})) return;  // 4: g_idx
    const auto number = [](int64_t value) { return static_cast<uint64_t>(value); };
    auto found = find_blocks(model_, *parts, {number(rows), number(columns), number(bits), number(size)});
    if (!found) return;
    const std::string weight = graph_.add(std::move(*found)), matrix = graph_.editor.fresh(weight, "_transposed");
    Pieces pieces;
    graph_.editor.append_node(pieces, "Transpose", node, "_transpose", {weight}, {matrix});
    multiply(n, "MatMul", graph_.read({n, 0}), matrix, {n, 5}, node.outputs[0], pieces);
    graph_.replace(n, std::move(pieces));
  }

  void dynamic_product(uint32_t n) {
    auto found = find({n, 1}, {n, 2}, {n, 3}, -1, OnnxForm::integer_operator);
    if (!found) return;
    const std::string weight = graph_.add(std::move(*found));
    Pieces pieces;
    multiply(n, "MatMul", graph_.read({n, 0}), weight, {n, 4}, model_.nodes[n].outputs[0], pieces);
    graph_.replace(n, std::move(pieces));
  }

  //   (codes, s, z) = DynamicQuantizeLinear (x) or Gather (table);  y = Cast (MatMulInteger (codes, W, z, Z)) * (s * S)
  void integers(uint32_t n) {
    const bool is_conv = model_.nodes[n].op_type == "ConvInteger";
    const uint32_t cast = graph_.only_reader(n, "Cast"), last = graph_.only_reader(cast, "Mul");
    if (last == kNone || model_.nodes[cast].integer_or("to", 0) != int64_t{kFloat32}) return;
    const uint32_t scales = graph_.maker({last, model_.nodes[last].origins[0].node == cast ? 1u : 0u}, "Mul");
    if (scales == kNone) return;
    const uint32_t quantizer = graph_.maker({n, 0}, "DynamicQuantizeLinear");
    size_t own = 1;  // the factor of the weight
    if (quantizer != kNone) {
      const List<std::string_view>& given = model_.nodes[quantizer].outputs;
      if (given.size() != 3 || given[0] != graph_.name({n, 0}) || given[2] != graph_.name({n, 2})) return;
      own = graph_.name({scales, 0}) == given[1] ? 1 : 0;
      if (graph_.name({scales, 1 - own}) != given[1]) return;
    }
    auto found = find({n, 1}, {scales, own}, {n, 3}, is_conv ? 0 : -1, OnnxForm::integer_operator);
    if (!found) return;
    const std::string_view output = model_.nodes[last].outputs[0];
    std::string input;
    Pieces pieces;
    if (quantizer != kNone) {
      input = graph_.read({quantizer, 0});
    } else {
      input = graph_.editor.fresh(graph_.name({n, 0}), "_float");
      if (!append_rows({n, 0}, {scales, 1 - own}, {n, 2}, input, pieces)) return;
    }
    const std::string weight = graph_.add(std::move(*found));
    multiply(n, is_conv ? "Conv" : "MatMul", input, weight, {}, output, pieces);
    graph_.replace(last, std::move(pieces));
  }

  // Inputs: A, its scale and zero point, W, its scale and zero point; QLinear…: scale and zero point of Y, bias;
  // QGemm: bias, scale and zero point of Y, without which Y is float. Biases are integers of the product of both scales.
  void static_integers(uint32_t n) {
    const Node& node = model_.nodes[n];
    const bool is_gemm = node.op_type == "QGemm", is_conv = node.op_type == "QLinearConv";
    const onnx::Attribute* const alpha = node.find("alpha");
    const uint32_t a_scale = graph_.constant({n, 1});
    if (model_.opset() < 10 || (alpha != nullptr && alpha->real != 1.0f) || a_scale == kNone) return;
    for (const uint64_t d : model_.tensors[a_scale].shape)
      if (d != 1) return;
    const bool is_output_major = is_conv || (is_gemm && node.integer_or("transB", 0) != 0);
    auto found = find({n, 3}, {n, 4}, {n, 5}, is_output_major ? 0 : -1, OnnxForm::integer_operator);
    if (!found) return;
    OnnxEditor& editor = graph_.editor;
    const NodeInput bias{n, is_gemm ? 6u : 8u}, y_scale{n, is_gemm ? 7u : 6u}, y_zero{n, is_gemm ? 8u : 7u};
    const std::string_view y = node.outputs[0];
    const bool is_float = !graph_.has(y_scale);
    const std::string a = editor.fresh(y, "_input"), weight = graph_.add(std::move(*found)),
                      product = is_float ? std::string(y) : editor.fresh(y, "_float");
    Pieces pieces;
    const auto append = [&](const char* op_type, const char* suffix, std::initializer_list<std::string_view> inputs,
                            std::string_view output) {
      editor.append_node(pieces, op_type, node, suffix, inputs, {output});
    };
    if (!append_rows({n, 0}, {n, 1}, {n, 2}, a, pieces))
      append("DequantizeLinear", "_input", {graph_.read({n, 0}), graph_.read({n, 1}), graph_.read({n, 2})}, a);
    Names inputs{a, weight};
    std::string scale, real;
    if (graph_.has(bias)) {
      const std::string cast = editor.fresh(y, "_bias_cast");
      scale = editor.fresh(y, "_bias_scale");
      real = editor.fresh(y, "_bias");
      editor.append_node(pieces, "Cast", node, "_bias_cast", {graph_.read(bias)}, {cast}, "to", kFloat32);
      append("Mul", "_bias_scale", {graph_.read({n, 1}), graph_.read({n, 4})}, scale);
      append("Mul", "_bias", {cast, scale}, real);
      inputs.push_back(real);
    }
    graph_.append(pieces, is_conv ? "Conv" : is_gemm ? "Gemm" : "MatMul", n, inputs, {product}, is_conv || is_gemm);
    if (!is_float) append("QuantizeLinear", "_output", {product, graph_.read(y_scale), graph_.read(y_zero)}, y);
    graph_.replace(n, std::move(pieces));
  }

  // X, W, R, B, sequence_lens, initial_h, initial_c, P; scale and zero point of W, and of R.
  void recurrent(uint32_t n) {
    const auto w = graph_.parts({n, 1}, {n, 8}, {n, 9}), r = graph_.parts({n, 2}, {n, 10}, {n, 11});
    auto input = w ? find_transposed(model_, *w) : std::nullopt, state = r ? find_transposed(model_, *r) : std::nullopt;
    if (!input || !state) return;
    const std::string names[] = {graph_.add(std::move(*input)), graph_.add(std::move(*state))};
    Names inputs;
    for (size_t i = 0; i < 8; ++i) inputs.push_back(i == 1 || i == 2 ? names[i - 1] : graph_.read({n, i}));
    Pieces pieces;
    graph_.append(pieces, "LSTM", n, inputs, model_.nodes[n].outputs, true);
    graph_.replace(n, std::move(pieces));
  }

  const onnx::Model& model_;
  FloatGraph graph_;
};

}  // namespace

Result<DequantizedModel> dequantized(const onnx::Model& source) { return Dequantizer(source).run(); }

}  // namespace wasmquant::conversion
