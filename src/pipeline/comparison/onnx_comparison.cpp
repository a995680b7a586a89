// Pairs the weights of two ONNX models by name, as values or as the codes that they are decoded from.
#include "core/message.h"
#include "core/order.h"
#include "pipeline/comparison/comparer.h"
#include "pipeline/stored/onnx_dequantize.h"

namespace wasmquant {
namespace {

using conversion::OnnxModelWeight;
using onnx::Tensor;

// A model, or the float model that it was made from.
class ComparedGraph {
 public:
  static Result<ComparedGraph> of(const onnx::Model& model) {
    TRY(floats, conversion::dequantized(model));
    return ComparedGraph(model, std::move(floats));
  }

  const List<OnnxModelWeight>& weights() const noexcept { return weights_; }
  const onnx::Model& floats() const noexcept { return floats_.is_changed ? floats_.model : stored_; }

  // The names of graphs are not the same in both models, but their numbers are.
  const Tensor* find(std::string_view name, uint32_t graph) const {
    const auto name_of = [&](uint32_t i) { return floats().tensors[i].name; };
    for (size_t i = place_of(name, by_name_, name_of); i < by_name_.size() && name_of(by_name_[i]) == name; ++i)
      if (const Tensor& tensor = floats().tensors[by_name_[i]]; tensor.graph == graph) return &tensor;
    return nullptr;
  }

  // `reference`: the tensor of the other side, whose order of elements is wanted.
  Result<StoredWeight> stored(const Tensor& tensor, const OnnxModelWeight& reference) const {
    StoredWeight out;
    if (tensor.is_decoded()) {
      const conversion::StoredOnnxWeight& codes = floats_.weights[tensor.decoded];
      out = *stored_weight(stored_, codes);
      std::vector<uint64_t> shape = reference.shape;
      if (is_input_major(tensor, reference) != reference.is_input_major && shape.size() == 2) {
        std::swap(shape[0], shape[1]);
        out.task.layout.edit([](WeightLayout& layout) { layout.source_transposed = true; });
      }
      if (codes.shape != shape) return not_compared("has another shape in the quantized model");
    } else {
      if (tensor.encoding != onnx::Encoding::bytes)
        return not_compared("its values are not stored in one range of bytes");
      out.weight.shape = reference.shape;
      out.weight.source = *onnx::weight_dtype_of(tensor.data_type);
      TRY(layout, checkpoint_format_named(kPlainFormat)->layout(out.weight, {QuantizationSpec{}}));
      out.format = kPlainFormat;
      out.task.layout = std::move(layout);
      const auto [file, begin] = floats().place_of(tensor);
      out.task.components = {{file, begin}};
    }
    out.weight = {reference.layer, reference.layer_type, reference.shape, *onnx::weight_dtype_of(tensor.data_type),
                  PackMethod::reorder};
    out.task.name = tensor.name;
    return out;
  }

  static Error not_compared(const char* message) { return Error{ErrorCode::tensor_missing, "", message}; }

 private:
  ComparedGraph(const onnx::Model& model, conversion::DequantizedModel floats)
      : stored_(model),
        floats_(std::move(floats)),
        weights_(conversion::list_weights(this->floats())),
        by_name_(sorted_by_name(this->floats().tensors.size(),
                                [&](uint32_t i) { return this->floats().tensors[i].name; })) {}

  bool is_input_major(const Tensor& tensor, const OnnxModelWeight& other) const {
    const auto index = static_cast<uint32_t>(&tensor - floats().tensors.data());
    const size_t at = first_after(weights_.size(), [&](size_t i) { return weights_[i].tensor < index; });
    return at < weights_.size() && weights_[at].tensor == index ? weights_[at].is_input_major : other.is_input_major;
  }

  const onnx::Model& stored_;
  conversion::DequantizedModel floats_;
  List<OnnxModelWeight> weights_;
  List<uint32_t> by_name_;
};

Result<StoredPair> pair_of(const ComparedGraph& left, const ComparedGraph& right, const OnnxModelWeight& weight,
                           const Tensor& tensor) {
  const Tensor* const other = right.find(tensor.name, tensor.graph);
  if (other == nullptr || !onnx::weight_dtype_of(other->data_type) ||
      (!other->is_decoded() && other->shape != tensor.shape))
    return ComparedGraph::not_compared("is not in the quantized model, or under another name");
  StoredPair pair;
  TRY(reference, left.stored(tensor, weight));
  TRY(quantized, right.stored(*other, weight));
  pair.left = std::move(reference);
  pair.right = std::move(quantized);
  return pair;
}

}  // namespace

Status compare_onnx(const ModelIndex& left, const ModelIndex& right, Comparer& out) {
  TRY(reference, ComparedGraph::of(left.onnx().model()));
  TRY(quantized, ComparedGraph::of(right.onnx().model()));
  const onnx::Model& model = reference.floats();
  for (const OnnxModelWeight& weight : reference.weights())
    if (const Tensor& tensor = model.tensors[weight.tensor]; tensor.encoding != onnx::Encoding::none)
      out.add(tensor.name, pair_of(reference, quantized, weight, tensor));
  return {};
}

}  // namespace wasmquant
