#include "pipeline/forward_plan.h"

#include <utility>

#include "model/block_weights.h"
#include "model/forward_pass.h"
#include "pipeline/block_calibration.h"
#include "pipeline/stored_weight.h"

namespace wasmquant {
namespace {

/// Where a checkpoint keeps the decoder and its head: plain models, then the text part of multimodal ones.
struct Prefix {
  const char *body, *head;
};
constexpr Prefix kPrefixes[] = {
    {"model.", ""}, {"language_model.model.", "language_model."}, {"model.language_model.", ""}, {"", ""}};

class Planner {
 public:
  Planner(const ModelIndex& index, const StoredWeightReader& reader, const TileBytes& tile_bytes)
      : index_(index), reader_(reader), tile_bytes_(tile_bytes) {}

  bool has_layer(const std::string& layer) const noexcept {
    return index_.find(layer + ".weight") != nullptr || index_.find(layer + ".weight_packed") != nullptr;
  }

  /// A matrix [rows, columns], however it is stored.
  Status add_matrix(ForwardStep& step, uint32_t slot, std::string layer, const char* type, uint64_t rows,
                    uint64_t columns, bool can_stream) {
    const ModelTensor* plain = index_.find(layer + ".weight");
    const WeightDescription weight{std::move(layer), type, {rows, columns}, StorageDtype::F32, reader_.pack_method()};
    if (plain != nullptr && is_quantizable(plain->stored.dtype) && plain->stored.shape != weight.shape)
      return wrong_shape(*plain, weight.shape);
    TRY(found, reader_.find(index_, weight));
    return add(step, slot, found.task, found.format, weight, can_stream && !found.task.layout.column_tiles());
  }

  /// A norm's weight or a bias, [length].
  Status add_vector(ForwardStep& step, uint32_t slot, std::string name, uint64_t length) {
    const ModelTensor* tensor = index_.find(name);
    if (tensor == nullptr) return error_at(ErrorCode::tensor_missing, name, "is not in the model");
    const StoredTensor& stored = tensor->stored;
    const WeightDescription weight{std::move(name), "", {length}, stored.dtype};
    if (stored.shape != weight.shape) return wrong_shape(*tensor, weight.shape);
    if (!is_quantizable(stored.dtype))
      return error_at(ErrorCode::dtype_unsupported, stored.name, "holds {}; a forward pass needs F32, F16 or BF16 here",
                      info_of(stored.dtype).name);
    constexpr const char* kPlain = "fake-quantized";
    TRY(layout, checkpoint_format_named(kPlain)->layout(weight, {QuantizationSpec{}}));
    TensorTask task;
    task.name = stored.name;
    task.components.push_back({tensor->file, stored.begin});
    task.layout = std::move(layout);
    return add(step, slot, task, kPlain, weight, false);
  }

 private:
  Status add(ForwardStep& step, uint32_t slot, TensorTask& task, std::string_view format,
             const WeightDescription& weight, bool is_streamed) {
    set_tiles(task, tile_bytes_);
    ForwardTensor tensor;
    tensor.slot = slot;
    tensor.tiles = task.tiles;
    tensor.is_streamed = is_streamed;
    for (const Component& component : task.layout.components) tensor.bytes += component.bytes;
    if (!is_streamed) step.float_bytes += task.layout.rows * task.layout.columns * sizeof(float);
    tensor.name = task.name;
    tensor.task = write_task(task, format, weight);
    step.tensors.push_back(std::move(tensor));
    return {};
  }

  static Error wrong_shape(const ModelTensor& tensor, const std::vector<uint64_t>& wanted) {
    return error_at(ErrorCode::shape_mismatch, tensor.stored.name, "holds {}; by config.json it would be {}",
                    describe(tensor.stored.dtype, tensor.stored.shape), describe(tensor.stored.dtype, wanted));
  }

  const ModelIndex& index_;
  const StoredWeightReader& reader_;
  const TileBytes& tile_bytes_;
};

std::string_view without_weight(std::string_view name) { return name.substr(0, name.rfind('.')); }

}  // namespace

Result<ForwardPlan> plan_forward(const ModelIndex& model, std::string_view config_text, const TileBytes& tile_bytes) {
  if (model.onnx() != nullptr)
    return error_at(
        ErrorCode::not_implemented, "model",
        "forward passes of ONNX models, and what is calibrated by them, are part of a later version; take the "
        "model's safetensors");
  if (config_text.empty())
    return error_at(ErrorCode::config_invalid, "config.json", "is not beside the weights; a forward pass needs it");
  TRY(config, json::parse(config_text));
  ForwardPlan out;
  TRY(architecture, model::read_architecture(config));
  out.architecture = std::move(architecture);
  const model::Architecture& a = out.architecture;
  TRY(reader, StoredWeightReader::create(config_text));
  Planner planner(model, reader, tile_bytes);

  Prefix prefix = kPrefixes[0];
  for (const Prefix& candidate : kPrefixes)
    if (planner.has_layer(text_of("{}embed_tokens", candidate.body))) {
      prefix = candidate;
      break;
    }
  const std::string embedding = text_of("{}embed_tokens", prefix.body), head = text_of("{}lm_head", prefix.head);

  ForwardStep first;
  first.name = embedding;
  TRY_VOID(planner.add_matrix(first, kEmbeddingSlot, embedding, "Embedding", a.vocabulary, a.hidden, true));
  out.steps.push_back(std::move(first));
  const List<model::BlockWeight> weights = model::block_weights(a);
  for (uint32_t layer = 0; layer < a.layers; ++layer) {
    ForwardStep step;
    step.name = text_of("{}layers.{}", prefix.body, layer);
    for (const model::BlockWeight& weight : weights) {
      const auto slot = static_cast<uint32_t>(weight.slot);
      if (weight.rows == 0)
        TRY_VOID(planner.add_vector(step, slot, text_of("{}.{}", step.name, weight.name), weight.columns));
      else
        TRY_VOID(planner.add_matrix(step, slot, text_of("{}.{}", step.name, std::string(without_weight(weight.name))),
                                    "Linear", weight.rows, weight.columns, false));
    }
    out.steps.push_back(std::move(step));
  }
  ForwardStep last;
  last.name = head;
  TRY_VOID(planner.add_vector(last, kFinalNormSlot, text_of("{}norm.weight", prefix.body), a.hidden));
  const bool is_tied = a.tied_head || (config["tie_word_embeddings"].is_null() && !planner.has_layer(head));
  TRY_VOID(planner.add_matrix(last, kHeadSlot, is_tied ? embedding : head, is_tied ? "Embedding" : "Linear",
                              a.vocabulary, a.hidden, true));
  out.steps.push_back(std::move(last));
  return out;
}

json::Value forward_plan_json(const ForwardPlan& plan, size_t length) {
  json::Array steps;
  for (const ForwardStep& step : plan.steps) {
    json::Array tensors;
    for (const ForwardTensor& tensor : step.tensors) {
      json::Value row;
      row.set("slot", static_cast<int64_t>(tensor.slot));
      row.set("name", tensor.name);
      row.set("task", tensor.task);
      row.set("tiles", tensor.tiles);
      row.set("bytes", tensor.bytes);
      row.set("streamed", tensor.is_streamed);
      tensors.push_back(std::move(row));
    }
    json::Value row;
    row.set("name", step.name);
    row.set("floatBytes", step.float_bytes);
    row.set("tensors", std::move(tensors));
    steps.push_back(std::move(row));
  }
  const model::Architecture& a = plan.architecture;
  json::Value out;
  out.set("family", a.family);
  out.set("vocabulary", static_cast<int64_t>(a.vocabulary));
  out.set("maxPositions", static_cast<int64_t>(a.max_positions));
  out.set("tokenBytes", model::ForwardPass::bytes_per_token(a));
  out.set("calibrationBytes", BlockCalibration::working_bytes(a));
  out.set("workingBytes", model::ForwardPass::working_bytes(a, length));
  out.set("steps", std::move(steps));
  return out;
}

}  // namespace wasmquant
