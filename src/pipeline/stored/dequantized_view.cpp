#include "pipeline/stored/dequantized_view.h"

#include "pipeline/stored/quantized_weight_reader.h"
#include "pipeline/task/task.h"

namespace wasmquant {

Result<std::unique_ptr<ModelIndex>> original_model(const ModelIndex& model) {
  std::unique_ptr<ModelIndex> original;
  if (model.format().carries_config || model.format().has_graph) return original;
  const Result<json::Value>& config = model.config();
  if (!config) return config.error();
  TRY(reader, StoredWeightReader::create(*config, &model));
  if (reader.is_original(model)) return original;
  List<ModelTensor> tensors;
  for (DecodedTensor& each : reader.decoded_tensors(model)) {
    if (each.plain != nullptr) {
      tensors.push_back(*each.plain);
      continue;
    }
    TRY(found, reader.find(model, each.weight));
    ModelTensor& tensor = tensors.emplace_back();
    tensor.layer = each.weight.layer;
    tensor.layer_type = each.weight.layer_type;
    tensor.stored.name = std::move(each.name);
    tensor.stored.dtype = StorageDtype::F32;
    tensor.stored.shape = each.weight.shape;
    tensor.file = found.task.components.front().file;
    for (const Component& component : found.task.layout->components) tensor.stored.end += component.bytes;
    tensor.quantized = std::make_shared<StoredWeight>(std::move(found));
  }
  original = std::make_unique<ModelIndex>(model.with_tensors(std::move(tensors)));
  return original;
}

}  // namespace wasmquant
