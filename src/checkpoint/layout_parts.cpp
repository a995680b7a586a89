// The steps of laying out a weight that all checkpoint formats share.
#include <algorithm>

#include "checkpoint/checkpoint_format.h"
#include "checkpoint/read_only_format.h"
#include "runtimes/transformers/loader_names.h"

namespace wasmquant {

QuantizationSpec with_known_arithmetic(QuantizationSpec spec, StorageDtype source) noexcept {
  if (spec.grid.arithmetic == Arithmetic::weight)
    spec.grid.arithmetic = source == StorageDtype::BF16  ? Arithmetic::bfloat16
                           : source == StorageDtype::F16 ? Arithmetic::float16
                                                         : Arithmetic::float32;
  return spec;
}

Result<WeightLayout> begin_layout(const WeightDescription& weight, const Stages& asked) {
  Stages stages = asked;
  for (QuantizationSpec& stage : stages) stage = with_known_arithmetic(stage, weight.source);
  const bool is_progressive = stages.size() == 2 && !stages[1].is_scale_quant;
  const QuantizationSpec& spec = is_progressive ? stages[1] : stages[0];
  WeightLayout layout;
  if (stages.size() == 2) layout.stages = stages;
  layout.shape = weight.shape;
  layout.source = weight.source;
  layout.spec = spec;
  layout.bits = static_cast<uint8_t>(code_bits_of(spec));
  // The arrangement of scales determines the matrix: all later dimensions of a row are its columns. A vector is a
  // column: a tile may then have any number of its elements.
  layout.rows = weight.shape.empty() ? 1 : weight.shape[0];
  layout.columns = 1;
  for (size_t d = 1; d < weight.shape.size(); ++d) layout.columns *= weight.shape[d];
  TRY(granularity, granularity_of(weight.shape, spec));
  layout.granularity = std::move(granularity);
  return layout;
}

bool are_static(const Stages& stages) noexcept {
  for (const QuantizationSpec& stage : stages)
    if (!stage.is_dynamic && !info_of(stage.dtype).is_plain_cast()) return true;
  return false;
}

bool keeps_weight(const LayerPlan& layer) noexcept {
  return layer.weight->empty() || info_of(layer.weight->front().dtype).is_plain_cast();
}

List<std::string_view> heads_without_tensor(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  List<std::string_view> heads;
  for (const std::string_view head : transformers::tied_heads(family)) {
    const bool has_tensor = std::any_of(layers.begin(), layers.end(), [&](const LayerPlan& layer) {
      return layer.layer == head || layer.loader_layer == head;
    });
    if (!has_tensor) heads.push_back(head);
  }
  return heads;
}

bool has_activation_scales(const LayerPlan& layer) noexcept {
  return are_static(layer.inputs) || are_static(layer.outputs);
}

void add_component(WeightLayout& layout, const WeightDescription& weight, Role role, const char* suffix,
                   StorageDtype dtype, std::vector<uint64_t> shape) {
  uint64_t elements = 1;
  for (const uint64_t dimension : shape) elements *= dimension;
  const uint64_t bytes = info_of(dtype).bytes_of(elements);
  const bool follows_layer = weight.tensor.empty();
  std::string name = follows_layer ? text_of(".{}", std::string_view(suffix)) : weight.tensor;
  layout.components.push_back({role, std::move(name), dtype, std::move(shape), bytes, follows_layer});
}

QuantizationSpec with_source_scales(QuantizationSpec spec, StorageDtype source) {
  if (spec.scale_type != ScaleType::float_ || spec.scale_format != ScaleFormat::float32) return spec;
  if (source == StorageDtype::BF16) spec.scale_type = ScaleType::bfloat16;
  if (source == StorageDtype::F16) spec.scale_type = ScaleType::float16;
  return spec;
}

void add_component(WeightLayout& layout, const WeightDescription& weight, Role role, const char* suffix,
                   StorageDtype dtype, std::initializer_list<uint64_t> shape) {
  add_component(layout, weight, role, suffix, dtype, std::vector<uint64_t>(shape));
}

void set_dtype(Component& component, StorageDtype dtype) noexcept {
  if (component.dtype == dtype) return;  // GGUF block types have no bytes per element
  component.bytes = component.bytes * 8 / info_of(component.dtype).bits * info_of(dtype).bits / 8;
  component.dtype = dtype;
}

std::string describe(StorageDtype dtype, const std::vector<uint64_t>& shape) {
  std::string text = text_of("{} [", info_of(dtype).name);
  for (size_t d = 0; d < shape.size(); ++d) text += text_of("{}{}", d == 0 ? "" : ", ", shape[d]);
  return text += ']';
}

WeightLayout cast_layout(WeightLayout layout, const WeightDescription& weight) {
  layout.codes = CodeStorage::cast_values;
  layout.granularity = Granularity{};
  layout.granularity.inner = layout.rows * layout.columns;
  add_component(layout, weight, Role::codes, "weight",
                layout.spec.dtype == Dtype::bfloat16 ? StorageDtype::BF16 : StorageDtype::F16, weight.shape);
  return layout;
}

WeightLayout ggml_layout(const std::vector<uint64_t>& shape, StorageDtype source, GgmlType type, std::string name) {
  WeightLayout layout;
  layout.shape = shape;
  layout.source = source;
  layout.columns = shape.empty() ? 1 : shape.back();
  layout.rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) layout.rows *= shape[d];
  layout.codes = CodeStorage::ggml_rows;
  layout.granularity.inner = layout.rows * layout.columns;
  const StorageDtype stored = storage_dtype_of(type);
  layout.components.push_back(
      {Role::codes, std::move(name), stored, shape, info_of(stored).bytes_of(layout.rows * layout.columns)});
  return layout;
}

QuantizationSpec groups_of(Dtype dtype, ScaleFormat scale_format, uint64_t size) noexcept {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.scale_format = scale_format;
  spec.symmetric = info_of(dtype).is_signed;
  spec.qscheme = QScheme::per_group;
  spec.observer =
      scale_format == ScaleFormat::float32 ? ObserverId::PerGroupMinMaxObserver : ObserverId::PerBlockMXObserver;
  spec.ch_axis = -1;
  spec.group_size = static_cast<int64_t>(size);
  return spec;
}

StorageDtype scale_storage(const QuantizationSpec& spec) noexcept {
  if (spec.scale_type == ScaleType::bfloat16) return StorageDtype::BF16;
  if (spec.scale_type == ScaleType::float16) return StorageDtype::F16;
  // torch widens a scalar of 16 bits that meets one of 32, which is how Quark floors scales of integers.
  const bool is_widened = info_of(spec.dtype).is_integer && spec.qscheme == QScheme::per_tensor;
  if (spec.scale_type != ScaleType::float_ || is_widened) return StorageDtype::F32;
  if (spec.grid.arithmetic == Arithmetic::bfloat16) return StorageDtype::BF16;
  return spec.grid.arithmetic == Arithmetic::float16 ? StorageDtype::F16 : StorageDtype::F32;
}

}  // namespace wasmquant
