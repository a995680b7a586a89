// An embedding from quantized rows. GatherBlockQuantized of com.microsoft would be one node, but onnxruntime-web's builds with
// WebGPU have no kernel of it for processors.
#include <numeric>

#include "onnx_graph/onnx_operators.h"

namespace wasmquant::conversion {
namespace {

//   codes [..., blocks, bytes] = Gather(X_Q8, ids)    scales [..., blocks, 1] = Gather(X_scales, ids)
//   Y = Reshape((codes - zero points) * scales, [..., columns])
// Bytes of several codes become their values by a table of 256 rows.
class RowsGathered {
 public:
  RowsGathered(OnnxEditor& editor, const OnnxChoice& choice, const onnx::Node& node, const List<std::string>& names,
               Pieces& nodes)
      : editor_(editor),
        layout_(*choice.layout),
        node_(node),
        names_(names),
        nodes_(nodes),
        is_shared_(choice.form == OnnxForm::mat_mul_n_bits),
        float_type_(float_type_of(layout_)),
        blocks_(layout_.stored_blocks()),
        stored_(blocks_ * layout_.block) {}

  void run() {
    ids_shape_ = step("Shape", "_ids_shape", {node_.inputs[1]});
    const bool has_zero_points = names_.size() > 2;
    const float offset = has_zero_points ? 0.0f : layout_.code_offset;
    std::string values = rows_of(names_[0], "_codes");
    if (layout_.bits == 8) {
      values = as_float(values, "_codes_cast");
      if (!has_zero_points) values = step("Sub", "_codes_centred", {values, scalar(offset)});
    } else {
      values = step("Reshape", "_codes_blocks",
                    {unpacked(values, "_codes", offset), shape_with("_blocks", {blocks_, layout_.block})});
    }
    if (has_zero_points) values = step("Sub", "_codes_centred", {values, zero_points()});
    const std::string scales = rows_of(is_shared_ ? in_columns(names_[1], "_scales") : names_[1], "_scale");
    values = step("Mul", "_dequantized", {values, scales});
    if (stored_ != layout_.columns)  // without the padding
      values = first_columns(step("Reshape", "_padded", {values, list("_padded_shape", {~uint64_t{0}, stored_})}),
                             "_row", layout_.columns);
    editor_.append_node(nodes_, "Reshape", node_, "_reshape", {values, shape_with("_row", {layout_.columns})},
                        {node_.outputs[0]});
  }

 private:
  std::string step(std::string_view op_type, std::string_view suffix, std::initializer_list<std::string_view> inputs,
                   const char* attribute = nullptr, int64_t value = 0) {
    std::string name = editor_.fresh(node_.outputs[0], suffix);
    editor_.append_node(nodes_, op_type, node_, suffix, inputs, {name}, attribute, value);
    return name;
  }
  std::string list(std::string_view suffix, const std::vector<uint64_t>& values) {
    return editor_.int64_list(node_.graph, node_.outputs[0], suffix, values);
  }
  std::string scalar(float value) {
    return editor_.constant(node_.graph, node_.outputs[0], "_offset", float_type_, {}, float_bytes(value, float_type_));
  }

  std::string rows_of(std::string_view table, std::string_view suffix) {
    return step("Gather", suffix, {table, node_.inputs[1]});
  }
  std::string as_float(std::string_view bytes, std::string_view suffix) {
    return step("Cast", suffix, {bytes}, "to", float_type_);
  }
  // The shape of the ids, then these dimensions.
  std::string shape_with(std::string_view what, const std::vector<uint64_t>& dimensions) {
    return step("Concat", std::string(what) + "_shape", {ids_shape_, list(std::string(what) + "_size", dimensions)},
                "axis", 0);
  }
  // [rows, blocks] as [rows, blocks, 1].
  std::string in_columns(std::string_view matrix, const std::string& what) {
    return step("Reshape", what + "_columns", {matrix, list(what + "_columns_shape", {layout_.rows, blocks_, 1})});
  }
  // The first `count` columns of a matrix. Slice has no such form that every opset has.
  std::string first_columns(std::string_view matrix, const std::string& what, uint64_t count) {
    std::vector<uint64_t> columns(count);
    std::iota(columns.begin(), columns.end(), uint64_t{0});
    return step("Gather", what + "_unpadded", {matrix, list(what + "_columns", columns)}, "axis", 1);
  }
  // Codes minus `offset`, one axis more than the bytes.
  std::string unpacked(std::string_view bytes, const std::string& what, float offset) {
    const uint64_t per_byte = 8 / layout_.bits, shape[] = {256, per_byte};
    std::string values;
    for (uint32_t byte = 0; byte < 256; ++byte)
      for (uint32_t k = 0; k < per_byte; ++k) {
        const uint32_t code = byte >> (k * layout_.bits) & ((1u << layout_.bits) - 1);
        values += float_bytes(static_cast<float>(code) - offset, float_type_);
      }
    const std::string table =
        editor_.constant(node_.graph, node_.outputs[0], what + "_of_byte", float_type_, shape, values);
    return step("Gather", what + "_unpacked", {table, step("Cast", what + "_int32", {bytes}, "to", kInt32)});
  }

  // [..., blocks, 1]
  std::string zero_points() {
    if (!is_shared_ || layout_.bits == 8)
      return as_float(rows_of(is_shared_ ? in_columns(names_[2], "_zero_points") : names_[2], "_zero_point"),
                      "_zero_point_cast");
    const uint64_t row = layout_.components[2].shape[1] * (8 / layout_.bits);
    std::string matrix =
        step("Reshape", "_zero_points_rows",
             {unpacked(names_[2], "_zero_points", 0.0f), list("_zero_points_shape", {layout_.rows, row})});
    if (row != blocks_) matrix = first_columns(matrix, "_zero_points", blocks_);
    return rows_of(in_columns(matrix, "_zero_points"), "_zero_point");
  }

  OnnxEditor& editor_;
  const WeightLayout& layout_;
  const onnx::Node& node_;
  const List<std::string>& names_;
  Pieces& nodes_;
  const bool is_shared_;  // with MatMulNBits
  const uint32_t float_type_;
  const uint64_t blocks_, stored_;  // of a row; codes of a row
  std::string ids_shape_;
};

}  // namespace

void gather_rows(OnnxEditor& editor, const OnnxChoice& choice, const onnx::Node& node, const List<std::string>& names,
                 Pieces& nodes) {
  RowsGathered(editor, choice, node, names, nodes).run();
}

}  // namespace wasmquant::conversion
