#include "pipeline/model_index/assembled_tensor.h"

#include <algorithm>

#include "config/match/layer_type.h"

namespace wasmquant {
namespace {

StoredWeight described(const std::string& name, const std::vector<uint64_t>& shape, StorageDtype dtype) {
  StoredWeight stored;
  stored.format = kPlainFormat;
  stored.weight.layer = layer_name_of(name).layer;
  stored.weight.layer_type = layer_type_of(name, shape);
  stored.weight.shape = shape;
  stored.weight.source = dtype;
  stored.task.name = name;
  return stored;
}

Result<std::shared_ptr<const StoredWeight>> stored_of(const ModelTensor& tensor) {
  if (tensor.quantized) return tensor.quantized;
  const StoredTensor& own = tensor.stored;
  if (!is_quantizable(own.dtype, own.shape))
    return error_at(ErrorCode::dtype_unsupported, own.name, "holds {}, of which no other tensor can be made",
                    info_of(own.dtype).name);
  auto stored = std::make_shared<StoredWeight>(described(own.name, own.shape, own.dtype));
  TRY(layout, checkpoint_format_named(kPlainFormat)->layout(stored->weight, {QuantizationSpec{}}));
  stored->task.layout = std::move(layout);
  stored->task.components.push_back({tensor.file, own.begin});
  return std::shared_ptr<const StoredWeight>(std::move(stored));
}

}  // namespace

Result<ModelTensor> assembled_tensor(const std::string& name, std::vector<uint64_t> shape, Assembly assembly,
                                     const List<const ModelTensor*>& parts) {
  ModelTensor made;
  made.file = parts.front()->file;
  made.stored.dtype = parts.front()->stored.dtype;
  for (const ModelTensor* part : parts) {
    TRY(stored, stored_of(*part));
    if (part->stored.dtype != made.stored.dtype) made.stored.dtype = StorageDtype::F32;
    made.stored.end += part->stored.end - part->stored.begin;
    assembly.parts.push_back(std::move(stored));
  }
  auto stored = std::make_shared<StoredWeight>(described(name, shape, made.stored.dtype));
  TRY(layout, checkpoint_format_named(kPlainFormat)->layout(stored->weight, {QuantizationSpec{}}));
  layout.whole_lines = std::max<uint64_t>(layout.rows / std::max<uint64_t>(assembly.rounds, 1), 1);
  stored->task.layout = std::move(layout);
  stored->task.components.push_back(assembly.parts.front()->task.components.front());
  stored->task.assembly = std::move(assembly);
  made.layer = stored->weight.layer;
  made.layer_type = stored->weight.layer_type;
  made.stored.name = name;
  made.stored.shape = std::move(shape);
  made.quantized = std::move(stored);
  return made;
}

}  // namespace wasmquant
