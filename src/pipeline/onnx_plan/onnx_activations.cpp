#include "pipeline/onnx_plan/onnx_activations.h"

#include <algorithm>

#include "core/message.h"

namespace wasmquant {

bool OnnxActivations::takes_static(const conversion::OnnxModelWeight& weight) const noexcept {
  for (const onnx::Consumer& consumer : model_.tensors[weight.tensor].consumers)
    if (conversion::takes_static(model_, consumer)) return true;
  return false;
}

Status OnnxActivations::add(PlannedTensor& planned, const conversion::OnnxModelWeight& weight, const LayerConfig& layer,
                            List<ActivationRequest>& requests) {
  TensorTask& task = planned.task;
  const bool is_linear = weight.layer_type == std::string_view("Linear");
  for (const ActivationRole role : kActivationRoles) {
    const bool is_input = role == ActivationRole::input;
    const Stages& stages = is_input ? layer.input_tensors : layer.output_tensors;
    ActivationRequest request{weight.layer, role};
    request.importance = is_input && task.layout->spec.observer_options.weighted;
    if (request.importance) {
      // Layout rows must be those of [out, in].
      if (!is_linear || weight.is_input_major != task.layout->source_transposed)
        return error_at(ErrorCode::not_implemented, task.name,
                        "\"weighted\" is for MatMulNBits, and for DequantizeLinear before Gemm with transB; "
                        "exclude this layer");
      request.features = task.layout->columns;
    }
    if (options_.calibrates && are_static(stages) && takes_static(weight)) {
      auto storage = activation_storage(stages, 0);
      if (!storage || !storage->has_zero_point)
        return error_at(ErrorCode::format_unsupported, task.name,
                        "ONNX supports static scales of int8 and uint8 per tensor, not {}; set is_dynamic to "
                        "true, or leave {}_tensors out",
                        info_of(stages.front().dtype).name, name_of(role));
      // Scales have the dtype of the model's values.
      const auto type = onnx::weight_dtype_of(weight.data_type);
      storage->spec.scale_type = type == StorageDtype::F16    ? ScaleType::float16
                                 : type == StorageDtype::BF16 ? ScaleType::bfloat16
                                                              : ScaleType::float_;
      const bool is_signed = storage->zero_point == StorageDtype::I8;
      request.spec = std::move(storage->spec);
      request.scales = 1;
      planned.add_reason(text_of("; {}s static {}", name_of(role), is_signed ? "int8" : "uint8"));
      const json::Value& found = found_for(request, options_.activations);
      conversion::StaticScale scale{1, 0, is_signed};
      if (!found.is_null()) {
        scale.scale = static_cast<float>(found["scale"].items()[0].as_number());
        scale.zero_point = static_cast<int16_t>(found["zeroPoint"].items()[0].as_number());
      }
      known_.push_back({weight.tensor, role, scale});
    }
    if (request.importance)
      if (const json::Value& found = found_for(request, options_.activations); !found.is_null())
        task.importance = importance_in(found);
    // Two weights of one layer make the same request.
    const bool is_known = std::any_of(requests.begin(), requests.end(), [&](const ActivationRequest& other) {
      return other.role == role && other.layer == request.layer;
    });
    if ((request.spec || request.importance) && !is_known) requests.push_back(std::move(request));
  }
  return {};
}

void OnnxActivations::apply(conversion::OnnxChoice& choice) const {
  for (const Known& known : known_)
    if (known.tensor == choice.tensor)
      (known.role == ActivationRole::input ? choice.input : choice.output) = known.scale;
}

}  // namespace wasmquant
