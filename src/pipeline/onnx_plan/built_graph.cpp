// Each file of the model is external data under its number; weights that are stored as codes have no bytes of their own.
#include "pipeline/onnx_plan/built_graph.h"

#include <algorithm>
#include <iterator>

#include "core/message.h"
#include "families/near_names.h"
#include "families/table/forward_row.h"
#include "gguf_conversion/architectures/family.h"
#include "onnx_conversion/transformer_graph.h"

namespace wasmquant {
namespace {

using onnx::DataType;

constexpr size_t kDigits = 10;  // names in the order of numbers

std::string location_of(size_t file) {
  std::string digits = text_of("{}", uint64_t{file});
  return std::string(kDigits - digits.size(), '0') + digits;
}

std::optional<DataType> data_type_of(StorageDtype dtype) noexcept {
  switch (dtype) {
    case StorageDtype::F32:
      return DataType::float32;
    case StorageDtype::F16:
      return DataType::float16;
    case StorageDtype::BF16:
      return DataType::bfloat16;
    case StorageDtype::F64:
      return DataType::float64;
    default:
      return std::nullopt;
  }
}

// The graph, and the names that it points to.
struct BuiltGraph : onnx::ModelFile {
  List<std::string> locations;
};

class Tensors final : public conversion::StoredTensors {
 public:
  Tensors(const ModelIndex& model, const List<std::string>& locations) : model_(model), locations_(locations) {}

  bool has(std::string_view name) const noexcept override { return model_.find(name) != nullptr; }

  Result<conversion::StoredValues> find(std::string_view name) const override {
    const ModelTensor* const tensor = model_.find(name);
    if (tensor == nullptr) return error_at(ErrorCode::tensor_missing, std::string(name), "is not in the model");
    const StoredTensor& stored = tensor->stored;
    const auto type = data_type_of(stored.dtype);
    if (!type)
      return error_at(ErrorCode::dtype_unsupported, stored.name, "holds {}; the graph needs F32, F16, BF16 or F64 here",
                      info_of(stored.dtype).name);
    uint64_t bytes = info_of(stored.dtype).bits / 8;
    for (const uint64_t length : stored.shape) bytes *= length;
    const uint64_t begin = tensor->quantized ? 0 : stored.begin;
    return conversion::StoredValues{
        stored.name, static_cast<uint32_t>(*type), stored.shape, locations_[tensor->file], begin, begin + bytes};
  }

 private:
  const ModelIndex& model_;
  const List<std::string>& locations_;
};

Error no_builder(std::string_view type, const json::Value& config, std::string_view why) {
  List<std::string_view> types;
  for (const families::forward::Row& row : families::forward::kRows) types.push_back(row.model_type);
  const bool has_gguf = conversion::family_of(config) != nullptr;
  return error_at(ErrorCode::format_unsupported, "config.json: /model_type",
                  "no ONNX graph is built of models of type {q}{}. Export the model to ONNX elsewhere (optimum-cli "
                  "export onnx) and quantize that file{}",
                  type, why, has_gguf ? "; or write it as gguf, which llama.cpp and wllama run" : "");
}

Result<model::Architecture> architecture_of(const ModelIndex& model) {
  const Result<json::Value>& config = model.config();
  if (!config) return config.error();
  if (config->is_null())
    return error_at(ErrorCode::config_invalid, "config.json",
                    "is not in the folder of the weights; an ONNX graph is built from it");
  const std::string& type = (*config)["model_type"].as_string();
  if ((*config)["text_config"].is_object())
    return no_builder(type, *config, ", whose language model is one of several parts");
  const bool is_known = std::any_of(std::begin(families::forward::kRows), std::end(families::forward::kRows),
                                    [&](const families::forward::Row& row) { return row.model_type == type; });
  if (!is_known) return no_builder(type, *config, "");
  TRY(architecture, model::read_architecture(*config));
  if (const std::string_view part = conversion::unbuilt_part(architecture); !part.empty())
    return no_builder(type, *config, text_of(": they have {}", part));
  return architecture;
}

}  // namespace

Result<std::unique_ptr<ModelIndex>> built_graph(const ModelIndex& model, List<Diagnostic>& diagnostics) {
  TRY(architecture, architecture_of(model));
  auto graph = std::make_shared<BuiltGraph>();
  for (size_t file = 0; file < model.files().size(); ++file) graph->locations.push_back(location_of(file));
  const bool says_tied = !(**&model.config())["tie_word_embeddings"].is_null();
  TRY(text, conversion::transformer_graph(architecture, says_tied, Tensors(model, graph->locations)));
  auto skeleton = std::make_unique<onnx::Skeleton>();
  skeleton->append(text);
  TRY(read, onnx::read_model(std::move(skeleton)));
  graph->model = std::move(read);
  graph->model.first_external = 0;
  graph->model.locations = List<std::string_view>(graph->locations.begin(), graph->locations.end());
  for (onnx::Tensor& tensor : graph->model.tensors) {
    const ModelTensor* const source = model.find(tensor.name);
    if (source == nullptr || !source->quantized) continue;
    tensor.decoded = static_cast<uint32_t>(source - model.tensors().begin());
    tensor.location = {};
    tensor.begin = tensor.end = 0;
  }
  auto built = std::make_unique<ModelIndex>(model.with_graph(graph));
  uint64_t left = 0;
  const ModelTensor* first = nullptr;
  for (const ModelTensor& tensor : model.tensors()) {
    if (built->find(tensor.stored.name) != nullptr) continue;
    if (left++ == 0) first = &tensor;
  }
  for (uint32_t i = 0; i < built->tensors().size(); ++i) {
    const ModelTensor* const source = model.find(built->tensors()[i].stored.name);
    if (source != nullptr && source->quantized)
      built->set_codes(i, source->quantized, source->file, source->stored.begin, source->stored.end);
  }
  if (left > 0)
    diagnostics.push_back(
        {Severity::warning, "tensors-left", first->stored.name,
         text_of("is the first of {} tensors that the graph does not read: they are not written", left), ""});
  return built;
}

}  // namespace wasmquant
