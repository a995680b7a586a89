// Names in the files, shapes, and tasks that decode to float32.
#include "pipeline/forward/step_tensors.h"

#include <algorithm>
#include <utility>

#include "core/message.h"
#include "gguf_conversion/tensors/arranged_tensors.h"
#include "model/forward_pass.h"

namespace wasmquant {
Error StepTensors::is_arranged(const std::string& name) {
  return error_at(ErrorCode::not_implemented, name,
                  "has its values in another order in GGUF than the pass reads them: run the original model");
}

bool StepTensors::has_layer(const std::string& layer) const noexcept {
  if (family_ != nullptr) return index_.find(stored(text_of("{}.weight", layer)).name) != nullptr;
  return index_.find(layer + ".weight") != nullptr || index_.find(layer + ".weight_packed") != nullptr;
}

Status StepTensors::add_matrix(ForwardStep& step, uint32_t slot, std::string layer, const char* type, uint64_t rows,
                               uint64_t columns, bool can_stream) {
  const StoredName at = stored(text_of("{}.weight", layer));
  if (at.is_arranged) return is_arranged(at.name);
  if (at.expert >= 0) return add_one_of(step, slot, at.name, {a_.routing.experts, rows, columns}, at.expert);
  const ModelTensor* plain = index_.find(at.name);
  if (family_ != nullptr) {
    if (plain == nullptr) return missing(at.name);
    layer = without_weight(at.name);
  }
  const StorageDtype dtype = family_ != nullptr ? plain->stored.dtype : StorageDtype::F32;
  const WeightDescription weight{std::move(layer), type, {rows, columns}, dtype, reader_.pack_method()};
  if (plain != nullptr && is_quantizable(plain->stored.dtype) && plain->stored.shape != weight.shape &&
      !reader_.are_codes(index_, *plain))
    return wrong_shape(*plain, weight.shape);
  TRY(found, reader_.find(index_, weight));
  set_change(found.task, at.change);
  const bool is_streamed = can_stream && !found.task.layout->column_tiles();
  return add(step, slot, std::move(found.task), is_streamed);
}

Result<const ModelTensor*> StepTensors::plain_tensor(const std::string& name,
                                                     const std::vector<uint64_t>& shape) const {
  const ModelTensor* tensor = index_.find(name);
  if (tensor == nullptr) return missing(name);
  const StoredTensor& stored = tensor->stored;
  if (stored.shape != shape) return wrong_shape(*tensor, shape);
  if (!is_quantizable(stored.dtype))
    return error_at(ErrorCode::dtype_unsupported, stored.name, "holds {}; a forward pass needs F32, F16 or BF16 here",
                    info_of(stored.dtype).name);
  return tensor;
}

Status StepTensors::add_slice(ForwardStep& step, uint32_t slot, const std::string& name,
                              const std::vector<uint64_t>& shape, uint64_t first, uint64_t rows, uint64_t columns) {
  TRY(tensor, plain_tensor(name, shape));
  TRY(task, plain_task(*tensor, {name, "Linear", {rows, columns}, tensor->stored.dtype}));
  task.components[0].offset += first * info_of(tensor->stored.dtype).bits / 8;
  return add(step, slot, std::move(task), false);
}

Status StepTensors::add_turned_slice(ForwardStep& step, uint32_t slot, const std::string& name,
                                     const std::vector<uint64_t>& shape, uint64_t expert, uint64_t first,
                                     uint64_t columns) {
  TRY(tensor, plain_tensor(name, shape));
  TRY(task, plain_task(*tensor, {name, "Linear", {shape[1], columns}, tensor->stored.dtype}));
  task.components[0].offset += (expert * shape[1] * shape[2] + first) * info_of(tensor->stored.dtype).bits / 8;
  task.by_columns = task.change.is_transposed = true;
  task.source_pitch = shape[2];
  return add(step, slot, std::move(task), false);
}

Status StepTensors::add_one_of(ForwardStep& step, uint32_t slot, const std::string& name,
                               const std::vector<uint64_t>& shape, uint64_t expert) {
  if (family_ != nullptr && index_.find(name) == nullptr) return missing(name);
  const std::string layer(family_ != nullptr ? without_weight(name) : name);
  TRY(all, reader_.find(index_, {layer, "Linear", shape, StorageDtype::F32, reader_.pack_method()}));
  const auto one = wasmquant::expert_of(all, expert, shape[0]);
  if (one == nullptr)
    return error_at(ErrorCode::format_unsupported, name, "stores its experts so that none can be read by itself");
  TensorTask task = one->task;
  return add(step, slot, std::move(task), false);
}

Status StepTensors::add_vector(ForwardStep& step, uint32_t slot, std::string name, uint64_t length) {
  StoredName at = stored(std::move(name));
  const ModelTensor* tensor = index_.find(at.name);
  if (tensor == nullptr) return missing(at.name);
  const StoredTensor& stored = tensor->stored;
  const bool is_number = length == 1 && stored.shape.empty();
  if (!is_number && stored.shape != std::vector<uint64_t>{length} && stored.shape != std::vector<uint64_t>{1, length})
    return wrong_shape(*tensor, {length});
  if (!is_quantizable(stored.dtype))
    return error_at(ErrorCode::dtype_unsupported, stored.name, "holds {}; a forward pass needs F32, F16 or BF16 here",
                    info_of(stored.dtype).name);
  // A bias is permuted per head, like rows.
  WeightDescription weight{std::move(at.name), "", {length}, stored.dtype};
  if (at.change.interleaved_rows != 0) weight.shape.push_back(1);
  TRY(task, plain_task(*tensor, weight));
  set_change(task, at.change);
  return add(step, slot, std::move(task), false);
}

Result<TensorTask> StepTensors::plain_task(const ModelTensor& tensor, const WeightDescription& weight) {
  TRY(layout, checkpoint_format_named(kPlainFormat)->layout(weight, {QuantizationSpec{}}));
  TensorTask task;
  task.name = tensor.stored.name;
  task.components.push_back({tensor.file, tensor.stored.begin});
  task.layout = std::move(layout);
  return task;
}

StepTensors::StoredName StepTensors::stored(std::string name) const {
  if (family_ == nullptr) return {std::move(name), {}};
  using conversion::TensorKind;
  conversion::TensorMatch match = conversion::match_tensor(*family_, name);
  if (match.name.empty()) return {std::move(name), {}};
  const TensorKind kind = match.kind;
  const bool is_arranged = conversion::ArrangedTensors::covers(match) || kind == TensorKind::conv1d;
  StoredName out{std::move(match.name), {}, match.expert, is_arranged};
  if (family_->converts_with(families::kInterleavesHeads) && (kind == TensorKind::query || kind == TensorKind::key))
    out.change.interleaved_rows = a_.head_dim;
  out.change.adds_one =
      family_->converts_with(families::kAddsOneToNorms) && kind == TensorKind::norm && out.name.ends_with(".weight");
  out.change.inverse = out.change.any();
  return out;
}

void StepTensors::set_change(TensorTask& task, const ValueTransform& change) {
  task.change = change;
  if (change.interleaved_rows != 0)
    task.layout.edit([&](WeightLayout& layout) { layout.whole_lines = change.interleaved_rows; });
}

Error StepTensors::missing(const std::string& name) {
  return error_at(ErrorCode::tensor_missing, name, "is not in the model");
}

Status StepTensors::add(ForwardStep& step, uint32_t slot, TensorTask task, bool is_streamed) {
  set_tiles(task, tile_bytes_);
  if (task.by_columns) {  // whose lines are the columns
    const uint64_t bytes = task.layout->rows * sizeof(float), columns = task.layout->columns;
    task.tile_lines = std::clamp<uint64_t>(tile_bytes_.columns / bytes, 1, columns);
    task.tiles = (columns + task.tile_lines - 1) / task.tile_lines;
  }
  ForwardTensor& tensor = step.tensors.emplace_back();
  tensor.slot = slot;
  tensor.is_streamed = is_streamed;
  for (const Component& component : task.layout->components) tensor.bytes += component.bytes;
  step.kept_bytes += model::ForwardPass::kept_bytes(task.layout->rows, task.layout->columns);
  if (!is_streamed) step.float_bytes += task.layout->rows * task.layout->columns * sizeof(float);
  tensor.task = std::move(task);
  return {};
}

Error StepTensors::wrong_shape(const ModelTensor& tensor, const std::vector<uint64_t>& wanted) {
  return error_at(ErrorCode::shape_mismatch, tensor.stored.name, "holds {}; according to config.json it is {}",
                  describe(tensor.stored.dtype, tensor.stored.shape), describe(tensor.stored.dtype, wanted));
}

}  // namespace wasmquant
