#include "pipeline/stored/gathered_codes.h"

#include "formats/onnx/onnx_views.h"

namespace wasmquant::conversion {
namespace {

using onnx::kNone;
using onnx::Tensor;

/// Ends the names of tables with the codes of each byte.
constexpr std::string_view kTable = "_of_byte";

// A constant below Reshape, Cast and Gather.
struct Root {
  uint32_t tensor = kNone;
  uint32_t gather = kNone;  // of its rows
  uint32_t table = kNone;
  NodeInput at;  // that reads it
};

class GatheredCodes {
 public:
  explicit GatheredCodes(const FloatGraph& graph) : graph_(graph), model_(graph.model) {}

  std::optional<GatheredWeight> find(uint32_t reshape) const {
    const auto columns = row_length(reshape);
    if (!columns) return std::nullopt;
    uint32_t last = reshape;
    if (const uint32_t first_columns = graph_.maker({reshape, 0}, "Gather"); first_columns != kNone)
      last = graph_.maker({first_columns, 0}, "Reshape");  // without the padding
    const uint32_t product = graph_.maker({last, 0}, "Mul");
    if (product == kNone) return std::nullopt;
    const uint32_t difference = graph_.maker({product, 0}, "Sub");
    const Root codes = root_of(difference == kNone ? NodeInput{product, 0} : NodeInput{difference, 0}),
               scale = root_of({product, 1});
    const NodeInput ids{codes.gather, 1};
    if (codes.gather == kNone || scale.gather == kNone || !is_ids({scale.gather, 1}, ids) ||
        !is_ids({ids_shape(reshape), 0}, ids))
      return std::nullopt;
    const std::vector<uint64_t>& shape = model_.tensors[codes.tensor].shape;
    const uint64_t per_byte = codes.table == kNone ? 1 : model_.tensors[codes.table].shape[1];
    if (shape.size() != 3 || per_byte == 0 || per_byte > 4) return std::nullopt;
    StoredParts parts{codes.tensor, scale.tensor, kNone};
    const Root zero_point = difference == kNone ? Root() : root_of({difference, 1});
    if (zero_point.gather != kNone) {
      if (!is_ids({zero_point.gather, 1}, ids)) return std::nullopt;
      parts.zero_point = zero_point.tensor;
    } else if (difference != kNone ? !is_centre(zero_point.tensor) : codes.table == kNone) {
      return std::nullopt;
    }
    auto weight = find_blocks(model_, parts, {shape[0], *columns, 8 / per_byte, shape[2] * per_byte});
    if (!weight) return std::nullopt;
    weight->form = OnnxForm::gather_rows;
    return GatheredWeight{std::move(*weight), ids};
  }

 private:
  // The shape of the rows is that of the indices, and then this length.
  std::optional<uint64_t> row_length(uint32_t reshape) const {
    const uint32_t length = graph_.constant({graph_.maker({reshape, 1}, "Concat"), 1});
    if (length == kNone || ids_shape(reshape) == kNone) return std::nullopt;
    const auto values = onnx::integers_of(model_, model_.tensors[length]);
    if (!values || values->size() != 1 || values->front() <= 0) return std::nullopt;
    return static_cast<uint64_t>(values->front());
  }
  uint32_t ids_shape(uint32_t reshape) const {
    return graph_.maker({graph_.maker({reshape, 1}, "Concat"), 0}, "Shape");
  }
  bool is_ids(const NodeInput& at, const NodeInput& ids) const {
    return graph_.has(at) && graph_.name(at) == graph_.name(ids);
  }

  // Whether 128 is subtracted from the bytes.
  bool is_centre(uint32_t tensor) const {
    if (tensor == kNone) return false;
    const Tensor& value = model_.tensors[tensor];
    const onnx::Range range{value.begin, value.end};
    if (value.is_external() || !value.shape.empty() || !model_.skeleton->is_kept(range)) return false;
    return model_.skeleton->text(range) == float_bytes(128.0f, value.data_type);
  }

  Root root_of(NodeInput at) const {
    Root root;
    for (int step = 0; step < 8; ++step) {
      if (root.tensor = graph_.constant(at); root.tensor != kNone) return root;
      if (const uint32_t cast = graph_.maker(at, "Cast"); cast != kNone) {
        at = {cast, 0};
      } else if (const uint32_t reshape = graph_.maker(at, "Reshape"); reshape != kNone) {
        at = {reshape, 0};
      } else if (const uint32_t gather = graph_.maker(at, "Gather"); gather != kNone) {
        at = {gather, 0};
        const uint32_t data = graph_.constant(at);
        if (data != kNone && model_.tensors[data].name.ends_with(kTable) && model_.tensors[data].shape.size() == 2) {
          root.table = data;
          at = {gather, 1};
        } else if (model_.nodes[gather].integer_or("axis", 0) == 0) {
          if (root.gather != kNone) return {};
          root.gather = gather;
        }
      } else {
        return {};
      }
    }
    return {};
  }

  const FloatGraph& graph_;
  const onnx::Model& model_;
};

}  // namespace

std::optional<GatheredWeight> find_gathered(const FloatGraph& graph, uint32_t reshape) {
  return GatheredCodes(graph).find(reshape);
}

}  // namespace wasmquant::conversion
