#include "pipeline/model_index/expert_tensors.h"

#include "config/match/layer_type.h"
#include "pipeline/task/task.h"

namespace wasmquant {
namespace {

constexpr std::string_view kBias = "_bias";

std::vector<uint64_t> shape_of(const ModelIndex& model, const std::string& name) {
  const ModelTensor* const tensor = model.find(name);
  return tensor == nullptr ? std::vector<uint64_t>() : tensor->stored.shape;
}

// `elements` elements of the tensor from `first` on.
ModelTensor part_of(const ModelTensor& tensor, std::string name, std::vector<uint64_t> shape, uint64_t first) {
  const StorageDtypeInfo& dtype = info_of(tensor.stored.dtype);
  ModelTensor part;
  part.is_part = true;
  part.file = tensor.file;
  part.stored.name = std::move(name);
  part.stored.dtype = tensor.stored.dtype;
  part.stored.begin = tensor.stored.begin + dtype.bytes_of(first);
  uint64_t elements = 1;
  for (const uint64_t d : shape) elements *= d;
  part.stored.end = part.stored.begin + dtype.bytes_of(elements);
  part.stored.shape = std::move(shape);
  part.layer = layer_name_of(part.stored.name).layer;
  part.layer_type = "Linear";
  return part;
}

// For a quantized tensor. False if its experts cannot be separated.
bool add_decoded_matrices(const families::ExpertTensor& experts, const ModelTensor& tensor, List<ModelTensor>& out) {
  if (experts.is_gate_up) return false;
  List<ModelTensor> parts;
  const List<families::ExpertMatrix> matrices = experts.matrices();
  for (uint64_t e = 0; e < experts.experts; ++e) {
    const families::ExpertMatrix& matrix = matrices[e];
    ModelTensor& part = parts.emplace_back();
    part.quantized = expert_of(*tensor.quantized, e, experts.experts);
    if (part.quantized == nullptr) return false;
    part.is_part = true;
    part.file = tensor.file;
    part.stored.name = matrix.layer + ".weight";
    part.stored.dtype = tensor.stored.dtype;
    part.stored.shape = {matrix.rows, matrix.columns};
    for (const Component& component : part.quantized->task.layout->components) part.stored.end += component.bytes;
    part.layer = matrix.layer;
    part.layer_type = "Linear";
    part.is_input_major = experts.is_input_major;
  }
  for (ModelTensor& part : parts) out.push_back(std::move(part));
  return true;
}

void add_matrices(const families::ExpertTensor& experts, const ModelTensor& tensor, List<ModelTensor>& out) {
  for (const families::ExpertMatrix& matrix : experts.matrices()) {
    ModelTensor& part =
        out.emplace_back(part_of(tensor, matrix.layer + ".weight", {matrix.rows, matrix.columns}, matrix.first));
    part.is_input_major = experts.is_input_major;
    if (matrix.pitch != (experts.is_input_major ? matrix.rows : matrix.columns)) part.pitch = matrix.pitch;
  }
}

// A bias [E, out] of stacked experts.
bool add_biases(const ModelIndex& model, const ModelTensor& tensor, const families::ModelFamily& family,
                List<ModelTensor>& out) {
  const std::string& name = tensor.stored.name;
  if (!name.ends_with(kBias) || tensor.stored.shape.size() != 2) return false;
  const ModelTensor* const weight = model.find(name.substr(0, name.size() - kBias.size()));
  if (weight == nullptr) return false;
  const auto experts = experts_of(model, *weight, family);
  if (!experts || tensor.stored.shape != std::vector<uint64_t>{experts->experts, experts->rows}) return false;
  const List<families::ExpertMatrix> matrices = experts->matrices();
  uint64_t first = 0;
  for (const families::ExpertMatrix& matrix : matrices) {
    out.push_back(part_of(tensor, matrix.layer + ".bias", {matrix.rows}, first));
    first += matrix.rows;
  }
  return true;
}

}  // namespace

std::optional<families::ExpertTensor> experts_of(const ModelIndex& model, const ModelTensor& tensor,
                                                 const families::ModelFamily& family) {
  if (!families::is_expert_tensor(tensor.stored.name, tensor.stored.shape)) return std::nullopt;
  const families::ExpertSiblings siblings = families::expert_siblings(tensor.stored.name);
  return families::expert_tensor(tensor.stored.name, tensor.stored.shape, shape_of(model, siblings.gate_up),
                                 shape_of(model, siblings.down), family);
}

std::unique_ptr<ModelIndex> split_experts(const ModelIndex& model, const families::ModelFamily& family) {
  List<ModelTensor> tensors;
  bool any = false;
  for (const ModelTensor& tensor : model.tensors()) {
    const bool can_split = is_quantizable(tensor.stored.dtype) && !small_float_of(tensor.stored.dtype);
    const auto experts = can_split ? experts_of(model, tensor, family) : std::nullopt;
    if (experts && tensor.quantized == nullptr) {
      add_matrices(*experts, tensor, tensors);
      any = true;
    } else if (experts && add_decoded_matrices(*experts, tensor, tensors)) {
      any = true;
    } else if (!can_split || !add_biases(model, tensor, family, tensors)) {
      tensors.push_back(tensor);
    }
  }
  return any ? std::make_unique<ModelIndex>(model.with_tensors(std::move(tensors))) : nullptr;
}

}  // namespace wasmquant
