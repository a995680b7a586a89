#include "pipeline/stored/dequantized_view.h"

#include "core/message.h"
#include "pipeline/stored/onnx_dequantize.h"
#include "pipeline/stored/quantized_weight_reader.h"
#include "pipeline/task/task.h"

namespace wasmquant {
namespace {

// A graph, and the file whose names it points to.
struct OriginalGraph : onnx::ModelFile {
  std::shared_ptr<const FileDetails> source;
};

// Codes that a node works on, and that are not decoded.
void report_left(const onnx::Model& model, List<Diagnostic>* remarks) {
  uint64_t count = 0;
  std::string first, reason;
  for (const onnx::Tensor& tensor : model.tensors) {
    if (tensor.shape.size() < 2 || onnx::weight_dtype_of(tensor.data_type)) continue;
    for (const onnx::Consumer& consumer : tensor.consumers) {
      if (consumer.use != onnx::Use::quantized) continue;
      if (count++ == 0) {
        first = tensor.name;
        reason = conversion::reason_no_weight(model, tensor);
      }
      break;
    }
  }
  if (count != 0 && remarks != nullptr)
    remarks->push_back({Severity::warning, "quantized-already", first,
                        text_of("is the first of {} tensors that stay as they are; {}", count, reason),
                        "start from the model that this one was made from"});
}

Result<std::unique_ptr<ModelIndex>> original_graph(const ModelIndex& model, List<Diagnostic>* remarks) {
  const onnx::Model& source = model.onnx().model();
  std::unique_ptr<ModelIndex> original;
  if (source.quantized_nodes == 0) return original;
  TRY(found, conversion::dequantized(source));
  report_left(found.is_changed ? found.model : source, remarks);
  if (!found.is_changed) return original;
  auto graph = std::make_shared<OriginalGraph>();
  graph->model = std::move(found.model);
  graph->source = model.graph_file();
  original = std::make_unique<ModelIndex>(model.with_graph(std::move(graph)));
  const onnx::Model& floats = original->onnx().model();
  for (uint32_t i = 0; i < original->tensors().size(); ++i) {
    const uint32_t decoded = floats.tensors[original->onnx_tensors()[i].tensor].decoded;
    if (decoded == onnx::kNone) continue;
    const conversion::StoredOnnxWeight& weight = found.weights[decoded];
    const onnx::Tensor& codes = source.tensors[weight.parts.codes];
    const auto [file, begin] = source.place_of(codes);
    original->set_codes(i, stored_weight(source, weight), file, begin, begin + (codes.end - codes.begin));
  }
  return original;
}

}  // namespace

Result<std::unique_ptr<ModelIndex>> original_model(const ModelIndex& model, List<Diagnostic>* remarks) {
  std::unique_ptr<ModelIndex> original;
  if (model.format().has_graph) return original_graph(model, remarks);
  if (model.format().carries_config) return original;
  const Result<json::Value>& config = model.config();
  if (!config) return config.error();
  TRY(reader, StoredWeightReader::create(*config, &model));
  if (remarks != nullptr) *remarks = reader.remarks();
  if (reader.is_original(model) && !reader.rearranges()) return original;
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
  std::string other_config;
  TRY_VOID(reader.restore(model, tensors, other_config));
  original = std::make_unique<ModelIndex>(model.with_tensors(std::move(tensors)));
  if (!other_config.empty()) original->replace_config(std::move(other_config));
  if (reader.rearranges()) original->forget_metadata("format");  // the tool's; written files say their own
  return original;
}

}  // namespace wasmquant
