// Matrices and vectors of single experts as parts of a tensor: of bytes, of codes, or of what it is made of.
#include "pipeline/model_index/expert_tensors.h"

#include "config/match/layer_type.h"
#include "families/module_path.h"
#include "pipeline/task/task.h"
#include "runtimes/transformers/conversions.h"

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

// For a quantized tensor. False if its experts cannot be separated. Gate and up can be where they are parts of it.
bool add_decoded_matrices(const families::ExpertTensor& experts, const ModelTensor& tensor, List<ModelTensor>& out) {
  const Assembly& assembly = tensor.quantized->task.assembly;
  const size_t halves = experts.is_gate_up ? 2 : 1;
  if (experts.is_gate_up && (assembly.parts.size() != 2 || assembly.interleaved != 0)) return false;
  List<ModelTensor> parts;
  const List<families::ExpertMatrix> matrices = experts.matrices();
  for (uint64_t m = 0; m < matrices.size(); ++m) {
    const families::ExpertMatrix& matrix = matrices[m];
    const uint64_t e = m / halves;
    ModelTensor& part = parts.emplace_back();
    part.quantized = expert_of(experts.is_gate_up ? *assembly.parts[m % 2] : *tensor.quantized, e, experts.experts);
    if (part.quantized == nullptr) return false;
    part.is_part = true;
    part.file = tensor.file;
    part.stored.name = matrix.layer + ".weight";
    part.stored.dtype = tensor.stored.dtype;
    part.stored.shape = {matrix.rows, matrix.columns};
    for (const Component& component : part.quantized->task.layout->components) part.stored.end += component.bytes;
    part.layer = matrix.layer;
    part.layer_type = "Linear";
    part.is_input_major = experts.is_input_major && !experts.is_gate_up;  // the halves are stored as [out, in]
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

}  // namespace

bool add_expert_matrices(const families::ExpertTensor& experts, const ModelTensor& tensor, std::string_view role,
                         List<ModelTensor>& out) {
  if (role == "weight") {
    if (tensor.quantized != nullptr) return add_decoded_matrices(experts, tensor, out);
    add_matrices(experts, tensor, out);
    return true;
  }
  if (tensor.quantized != nullptr) return false;
  uint64_t first = 0;
  for (const families::ExpertMatrix& matrix : experts.matrices()) {
    out.push_back(part_of(tensor, matrix.layer + ".bias", {matrix.rows}, first));
    first += matrix.rows;
  }
  return true;
}

namespace {

// A bias [E, out] of stacked experts.
bool add_biases(const ModelIndex& model, const ModelTensor& tensor, const families::ModelFamily& family,
                List<ModelTensor>& out) {
  const std::string& name = tensor.stored.name;
  if (!name.ends_with(kBias) || tensor.stored.shape.size() != 2) return false;
  const ModelTensor* const weight = model.find(name.substr(0, name.size() - kBias.size()));
  if (weight == nullptr) return false;
  const auto experts = experts_of(model, *weight, family);
  if (!experts || tensor.stored.shape != std::vector<uint64_t>{experts->experts, experts->rows}) return false;
  return add_expert_matrices(*experts, tensor, "bias", out);
}

}  // namespace

std::optional<ModelTensor> rows_of(const ModelTensor& tensor, uint64_t first, uint64_t count) {
  const std::vector<uint64_t>& shape = tensor.stored.shape;
  const uint64_t columns = shape.empty() ? 1 : shape.back();
  uint64_t rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  if (first == 0 && count == rows) return tensor;
  if (tensor.quantized == nullptr) return part_of(tensor, tensor.stored.name, {count, columns}, first * columns);
  if (count == 0 || rows % count != 0 || first % count != 0) return std::nullopt;
  ModelTensor part = tensor;
  part.quantized = expert_of(*tensor.quantized, first / count, rows / count);
  if (part.quantized == nullptr) return std::nullopt;
  part.stored.shape = {count, columns};
  return part;
}

std::optional<families::ExpertTensor> experts_of(const ModelIndex& model, const ModelTensor& tensor,
                                                 const families::ModelFamily& family) {
  if (!families::is_expert_tensor(tensor.stored.name, tensor.stored.shape)) return std::nullopt;
  const families::ExpertSiblings siblings = families::expert_siblings(tensor.stored.name);
  const std::string_view part = families::last_component(tensor.layer);
  const transformers::Conversion* const merged = transformers::Conversions(family).merged_experts(part);
  return families::expert_tensor(tensor.stored.name, tensor.stored.shape, shape_of(model, siblings.gate_up),
                                 shape_of(model, siblings.down), family,
                                 merged == nullptr ? std::string_view() : merged->sources);
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
    } else if (experts && tensor.quantized != nullptr && add_decoded_matrices(*experts, tensor, tensors)) {
      any = true;
    } else if (!can_split || !add_biases(model, tensor, family, tensors)) {
      tensors.push_back(tensor);
    }
  }
  return any ? std::make_unique<ModelIndex>(model.with_tensors(std::move(tensors))) : nullptr;
}

}  // namespace wasmquant
