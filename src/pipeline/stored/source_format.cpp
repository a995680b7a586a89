#include "pipeline/stored/source_format.h"

#include <algorithm>

#include "config/match/name_match.h"

namespace wasmquant {

std::string SourceFormat::weight_name(const ModelTensor& codes) const {
  return text_of("{}.weight", split_name(codes.stored.name).layer);
}

const ModelTensor* tensor_of(const ModelIndex& model, std::string_view layer, std::string_view suffix) {
  return model.find(text_of("{}.{}", layer, suffix));
}

SplitName split_name(std::string_view name) noexcept {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_usable_pattern(std::string_view pattern) {
  std::string problem;
  if (is_regex(pattern)) Regex(pattern.substr(3), &problem);
  return problem.empty();
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) noexcept {
  return std::find(list.begin(), list.end(), text) != list.end();
}

Result<const ModelTensor*> need_tensor(const ModelIndex& model, const std::string& name) {
  const ModelTensor* tensor = model.find(name);
  if (tensor == nullptr) return error_at(ErrorCode::tensor_missing, name, "is not in the quantized model");
  return tensor;
}

Error wrong_tensor(const ModelTensor& tensor, std::string_view format, const Component& expected) {
  return error_at(ErrorCode::shape_mismatch, tensor.stored.name, "holds {}; {} stores {} for this weight",
                  describe(tensor.stored.dtype, tensor.stored.shape), format, describe(expected.dtype, expected.shape));
}

Result<StoredWeight> locate(const ModelIndex& model, std::string_view format, WeightDescription weight,
                            const Stages& stages, bool reads_group_index) {
  StoredWeight found;
  found.format = format;
  TRY(layout, checkpoint_format_named(format)->layout(weight, stages));
  found.task.name = text_of("{}.weight", weight.layer);
  layout.reads_group_index = reads_group_index && may_have_group_index(layout.codes);
  found.task.components.resize(layout.components.size());
  found.weight = std::move(weight);
  for (size_t c = 0; c < layout.components.size(); ++c) {
    Component& component = layout.components[c];
    const std::string name = component.name_in(found.weight.layer);
    const ModelTensor* tensor = model.find(name);
    if (tensor == nullptr && is_known(component.role) &&
        !(layout.reads_group_index && component.role == Role::group_index))
      continue;
    if (tensor == nullptr) return error_at(ErrorCode::tensor_missing, name, "is not in the quantized model");
    const StorageDtype dtype = tensor->stored.dtype;
    const bool can_be_any_float =
        component.role == Role::scale || component.role == Role::bias || component.role == Role::column_factor;
    const bool is_float =
        is_quantizable(dtype) && !small_float_of(dtype) && !info_of(dtype).is_ggml() && dtype != StorageDtype::F64;
    const bool is_e4m3_in_bytes = component.dtype == StorageDtype::F8_E4M3 && dtype == StorageDtype::U8;
    // A scale of the whole tensor has one axis or none.
    const bool is_one = component.role == Role::scale && tensor->stored.shape.empty() && component.shape.size() == 1 &&
                        component.shape[0] == 1;
    if ((tensor->stored.shape != component.shape && !is_one) ||
        (dtype != component.dtype && !(can_be_any_float && (is_float || is_e4m3_in_bytes))))
      return wrong_tensor(*tensor, format, component);
    if (!is_e4m3_in_bytes) set_dtype(component, dtype);
    found.task.components[c] = {tensor->file, tensor->stored.begin};
  }
  found.task.layout = std::move(layout);
  return found;
}

}  // namespace wasmquant
