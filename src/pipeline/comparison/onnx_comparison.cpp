// Pairs the weights of two ONNX models through the nodes that read their codes.
#include "core/message.h"
#include "core/order.h"
#include "pipeline/comparison/comparer.h"

namespace wasmquant {
namespace {

using conversion::OnnxModelWeight;
using onnx::DataType;
using onnx::Tensor;

constexpr const char* kPlain = "fake-quantized";

std::optional<Dtype> integer_of(uint32_t bits, bool is_signed) {
  for (const DtypeInfo& row : kDtypes)
    if (row.is_integer && row.bits == bits && row.is_signed == is_signed) return row.dtype;
  return std::nullopt;
}

bool is_signed(uint32_t data_type) {
  for (const DataType type : {DataType::int8, DataType::int4, DataType::int2})
    if (static_cast<uint32_t>(type) == data_type) return true;
  return false;
}

class OnnxComparer {
 public:
  OnnxComparer(const ModelIndex& left, const ModelIndex& right)
      : reference_(left.onnx().model()),
        weights_(left.onnx().weights()),
        quantized_(right.onnx().model()),
        by_name_(sorted_by_name(quantized_.tensors.size(), NameOfTensor{quantized_})) {}

  void run(Comparer& out) const {
    for (const OnnxModelWeight& weight : weights_)
      if (const Tensor& tensor = reference_.tensors[weight.tensor]; tensor.encoding != onnx::Encoding::none)
        out.add(tensor.name, pair_of(weight, tensor));
  }

 private:
  struct NameOfTensor {
    const onnx::Model& model;
    std::string_view operator()(uint32_t index) const { return model.tensors[index].name; }
  };

  // In the quantized model; graph numbers are the same in both.
  const Tensor* named(std::string_view name, const char* suffix, uint32_t graph) const {
    const std::string wanted = text_of("{}{}", name, suffix);
    for (size_t i = place_of(wanted, by_name_, NameOfTensor{quantized_}); i < by_name_.size(); ++i) {
      const Tensor& tensor = quantized_.tensors[by_name_[i]];
      if (tensor.name != wanted) break;
      if (tensor.graph == graph) return &tensor;
    }
    return nullptr;
  }

  Result<StoredPair> pair_of(const OnnxModelWeight& weight, const Tensor& tensor) const {
    StoredPair pair;
    pair.left.weight = {weight.layer, weight.layer_type, weight.shape, *onnx::weight_dtype_of(tensor.data_type),
                        PackMethod::reorder};
    pair.left.format = pair.right.format = kPlain;
    pair.left.task.name = pair.right.task.name = tensor.name;
    pair.right.weight = pair.left.weight;
    TRY_VOID(set_plain(pair.left, reference_, tensor));
    const Tensor* same = named(tensor.name, "", tensor.graph);
    if (same != nullptr && onnx::weight_dtype_of(same->data_type) && same->shape == tensor.shape) {
      TRY_VOID(set_plain(pair.right, quantized_, *same));
    } else {
      TRY(form, set_quantized(pair.right.task, weight, tensor));
      pair.right.format = name_of(form);
    }
    return pair;
  }

  static Location location_of(const onnx::Model& model, const Tensor& tensor) {
    uint32_t file = 0;
    if (tensor.is_external())
      while (model.locations[file++] != tensor.location) continue;
    return {file, tensor.begin};
  }

  static Error not_compared(const char* message) { return Error{ErrorCode::tensor_missing, "", message}; }

  static Status set_plain(StoredWeight& stored, const onnx::Model& model, const Tensor& tensor) {
    if (tensor.encoding != onnx::Encoding::bytes)
      return not_compared("its values are not stored in one range of bytes");
    WeightDescription own = stored.weight;
    own.source = *onnx::weight_dtype_of(tensor.data_type);
    TRY(layout, checkpoint_format_named(kPlain)->layout(own, {QuantizationSpec{}}));
    stored.task.layout = std::move(layout);
    stored.task.components = {location_of(model, tensor)};
    return {};
  }

  /// Errors: tensor-missing; those of onnx_layout.
  Result<OnnxForm> set_quantized(TensorTask& task, const OnnxModelWeight& weight, const Tensor& tensor) const {
    OnnxForm form = OnnxForm::mat_mul_n_bits;
    QuantizationSpec spec;
    const Tensor *codes = nullptr, *scale = nullptr, *zero_point = nullptr;
    const std::pair<const char*, uint32_t> blocks[] = {{"_Q4", 4}, {"_Q8", 8}, {"_Q2", 2}};
    for (const auto& [suffix, bits] : blocks) {
      codes = named(tensor.name, suffix, tensor.graph);
      if (codes == nullptr) continue;
      scale = named(tensor.name, "_scales", tensor.graph);
      zero_point = named(tensor.name, "_zero_points", tensor.graph);
      if (scale == nullptr || scale->shape.empty() || scale->shape.back() == 0 || codes->shape.empty())
        return not_compared("its quantized values have no scales");
      form = codes->shape.size() == 3 ? OnnxForm::mat_mul_n_bits : OnnxForm::gather_block_quantized;
      const uint64_t row_bytes =
          codes->shape.size() == 3 ? codes->shape.back() : codes->shape.back() / scale->shape.back();
      set_groups(spec, 1, row_bytes * 8 / bits);
      spec.dtype = *integer_of(bits, zero_point == nullptr);
      break;
    }
    if (codes == nullptr) {
      codes = named(tensor.name, "_quantized", tensor.graph);
      scale = named(tensor.name, "_scale", tensor.graph);
      zero_point = named(tensor.name, "_zero_point", tensor.graph);
      if (codes == nullptr || scale == nullptr || codes->consumers.empty())
        return not_compared("is not in the quantized model, or under another name");
      const auto dtype = integer_of(onnx::bits_of(codes->data_type), is_signed(codes->data_type));
      if (!dtype) return not_compared("does not contain integers of 2, 4 or 8 bits");
      spec.dtype = *dtype;
      const onnx::Node& node = quantized_.nodes[codes->consumers[0].node];
      form = node.op_type == "DequantizeLinear" ? OnnxForm::dequantize_linear : OnnxForm::integer_operator;
      set_scheme(spec, form, describe(reference_, weight, form), node, scale->shape);
    }
    spec.symmetric = zero_point == nullptr;
    TRY(layout, onnx_layout(form, describe(reference_, weight, form), spec));
    task.layout = std::move(layout);
    for (const Component& component : task.layout->components) {
      const Tensor* stored = component.role == Role::codes ? codes : component.role == Role::scale ? scale : zero_point;
      if (stored == nullptr || stored->encoding != onnx::Encoding::bytes ||
          stored->end - stored->begin != component.bytes)
        return not_compared("its codes, scales and zero points have other sizes than its shape needs");
      task.components.push_back(location_of(quantized_, *stored));
    }
    return form;
  }

  static void set_groups(QuantizationSpec& spec, int64_t axis, uint64_t size) {
    spec.qscheme = QScheme::per_group;
    spec.observer = ObserverId::PerGroupMinMaxObserver;
    spec.ch_axis = axis;
    spec.group_size = static_cast<int64_t>(size);
  }

  // Spec axes are those of [out, in].
  static void set_scheme(QuantizationSpec& spec, OnnxForm form, const OnnxWeight& weight, const onnx::Node& node,
                         const std::vector<uint64_t>& scale) {
    std::vector<uint64_t> shape = weight.shape;
    if (weight.is_transposed) std::swap(shape[0], shape[1]);
    const bool is_input_major = weight.is_input_major != weight.is_transposed;
    const auto as_config = [&](int64_t axis) {
      if (weight.is_batch) axis -= static_cast<int64_t>(shape.size()) - 2;
      return is_input_major && (axis == 0 || axis == 1) ? 1 - axis : axis;
    };
    if (scale.empty()) return;  // per_tensor
    const bool is_linear = form == OnnxForm::dequantize_linear;
    if (is_linear && scale.size() == shape.size() && shape.size() >= 2) {
      const size_t last = shape.size() - 1, axis = scale[last] == shape[last] ? last - 1 : last;
      return set_groups(spec, as_config(static_cast<int64_t>(axis)), scale[axis] == 0 ? 0 : shape[axis] / scale[axis]);
    }
    spec.qscheme = QScheme::per_channel;
    spec.observer = ObserverId::PerChannelMinMaxObserver;
    const onnx::Attribute* axis = node.find("axis");
    spec.ch_axis = is_linear ? as_config(axis == nullptr ? 1 : axis->integer) : 0;
  }

  const onnx::Model& reference_;
  const List<OnnxModelWeight>& weights_;
  const onnx::Model& quantized_;
  const List<uint32_t> by_name_;  // tensors of the quantized model
};

}  // namespace

void compare_onnx(const ModelIndex& left, const ModelIndex& right, Comparer& out) {
  OnnxComparer(left, right).run(out);
}

}  // namespace wasmquant
