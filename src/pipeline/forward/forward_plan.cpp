// Steps are planned with their weights and tiles; config.json of a GGUF file is built from its metadata.
#include "pipeline/forward/forward_plan.h"

#include <utility>

#include "gguf_conversion/family.h"
#include "gguf_conversion/gguf_config.h"
#include "model/block_weights.h"
#include "model/forward_pass.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/stored/quantized_weight_reader.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant {
namespace {

std::string_view without_weight(std::string_view name) { return name.substr(0, name.rfind('.')); }

/// Name prefixes of the decoder and its head: plain models, then the text part of multimodal ones.
struct Prefix {
  const char *body, *head;
};
constexpr Prefix kPrefixes[] = {
    {"model.", ""}, {"language_model.model.", "language_model."}, {"model.language_model.", ""}, {"", ""}};
constexpr const char* kEncoderPrefixes[] = {"bert.", "roberta.", ""};

/// A tensor under the name in its file.
struct StoredName {
  std::string name;
  ValueTransform change;  // to be reverted
};

class Planner {
 public:
  /// `family`: of a GGUF model, else null.
  Planner(const ModelIndex& index, const StoredWeightReader& reader, const TileBytes& tile_bytes,
          const conversion::Family* family, uint32_t head_rows)
      : index_(index), reader_(reader), tile_bytes_(tile_bytes), family_(family), head_rows_(head_rows) {}

  bool has_layer(const std::string& layer) const noexcept {
    if (family_ != nullptr) return index_.find(stored(text_of("{}.weight", layer)).name) != nullptr;
    return index_.find(layer + ".weight") != nullptr || index_.find(layer + ".weight_packed") != nullptr;
  }

  /// Adds a matrix [rows, columns] in any storage.
  Status add_matrix(ForwardStep& step, uint32_t slot, std::string layer, const char* type, uint64_t rows,
                    uint64_t columns, bool can_stream) {
    const StoredName at = stored(text_of("{}.weight", layer));
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

  Status add_vector(ForwardStep& step, uint32_t slot, std::string name, uint64_t length) {
    StoredName at = stored(std::move(name));
    const ModelTensor* tensor = index_.find(at.name);
    if (tensor == nullptr) return missing(at.name);
    const StoredTensor& stored = tensor->stored;
    if (stored.shape != std::vector<uint64_t>{length}) return wrong_shape(*tensor, {length});
    if (!is_quantizable(stored.dtype))
      return error_at(ErrorCode::dtype_unsupported, stored.name, "holds {}; a forward pass needs F32, F16 or BF16 here",
                      info_of(stored.dtype).name);
    // A bias is permuted per head, like rows.
    WeightDescription weight{std::move(at.name), "", {length}, stored.dtype};
    if (at.change.interleaved_rows != 0) weight.shape.push_back(1);
    constexpr const char* kBiasFormat = "fake-quantized";
    TRY(layout, checkpoint_format_named(kBiasFormat)->layout(weight, {QuantizationSpec{}}));
    TensorTask task;
    task.name = stored.name;
    task.components.push_back({tensor->file, stored.begin});
    task.layout = std::move(layout);
    set_change(task, at.change);
    return add(step, slot, std::move(task), false);
  }

 private:
  /// Maps a transformers name.
  StoredName stored(std::string name) const {
    if (family_ == nullptr) return {std::move(name), {}};
    using conversion::TensorKind;
    conversion::TensorMatch match = conversion::match_tensor(*family_, name);
    if (match.name.empty()) return {std::move(name), {}};
    StoredName out{std::move(match.name), {}};
    const TensorKind kind = match.row->kind;
    if (family_->converts_with(families::kInterleavesHeads) && (kind == TensorKind::query || kind == TensorKind::key))
      out.change.interleaved_rows = head_rows_;
    out.change.adds_one = family_->converts_with(families::kAddsOneToNorms) && kind == TensorKind::norm;
    out.change.inverse = out.change.any();
    return out;
  }

  static void set_change(TensorTask& task, const ValueTransform& change) {
    task.change = change;
    if (change.interleaved_rows != 0)
      task.layout.edit([&](WeightLayout& layout) { layout.whole_lines = change.interleaved_rows; });
  }

  static Error missing(const std::string& name) {
    return error_at(ErrorCode::tensor_missing, name, "is not in the model");
  }

  Status add(ForwardStep& step, uint32_t slot, TensorTask task, bool is_streamed) {
    set_tiles(task, tile_bytes_);
    ForwardTensor& tensor = step.tensors.emplace_back();
    tensor.slot = slot;
    tensor.is_streamed = is_streamed;
    for (const Component& component : task.layout->components) tensor.bytes += component.bytes;
    step.kept_bytes += model::ForwardPass::kept_bytes(task.layout->rows, task.layout->columns);
    if (!is_streamed) step.float_bytes += task.layout->rows * task.layout->columns * sizeof(float);
    tensor.task = std::move(task);
    return {};
  }

  static Error wrong_shape(const ModelTensor& tensor, const std::vector<uint64_t>& wanted) {
    return error_at(ErrorCode::shape_mismatch, tensor.stored.name, "holds {}; according to config.json it is {}",
                    describe(tensor.stored.dtype, tensor.stored.shape), describe(tensor.stored.dtype, wanted));
  }

  const ModelIndex& index_;
  const StoredWeightReader& reader_;
  const TileBytes& tile_bytes_;
  const conversion::Family* family_;
  uint32_t head_rows_;
};

// Builds config.json from GGUF metadata.
Result<json::Value> config_of(const ModelIndex& model) {
  TRY(config, conversion::config_of_gguf(model.gguf_metadata()));
  const ModelTensor* embedding = model.find("token_embd.weight");
  if (embedding != nullptr && !embedding->stored.shape.empty()) config.set("vocab_size", embedding->stored.shape[0]);
  config.set("tie_word_embeddings", model.find("output.weight") == nullptr);
  if (const auto end = model.gguf_metadata().find_count("tokenizer.ggml.eos_token_id"))
    config.set("eos_token_id", *end);
  if (const ModelTensor* types = model.find("token_types.weight"); types != nullptr && !types->stored.shape.empty())
    config.set("type_vocab_size", types->stored.shape[0]);
  config.set("attention_bias", model.find("blk.0.attn_output.bias") != nullptr);
  config.set("mlp_bias", model.find("blk.0.ffn_up.bias") != nullptr);
  if (model.find("rope_freqs.weight") != nullptr)
    return error_at(ErrorCode::not_implemented, "rope_freqs.weight",
                    "this tensor holds RoPE scaling factors, from which the method cannot be recovered: give the "
                    "original model's folder as the source");
  return config;
}

// One token or several.
json::Array ends_of(const json::Value& tokens) {
  json::Array ends;
  if (tokens.is_finite()) ends.push_back(tokens);
  for (const json::Value& token : tokens.items())
    if (token.is_finite()) ends.push_back(token);
  return ends;
}

// The weights of a block below the step's name.
Status add_block(Planner& planner, ForwardStep& step, const model::Architecture& a) {
  for (const model::BlockWeight& weight : model::block_weights(a)) {
    const auto slot = static_cast<uint32_t>(weight.slot);
    if (weight.rows == 0)
      TRY_VOID(planner.add_vector(step, slot, text_of("{}.{}", step.name, weight.name), weight.columns));
    else
      TRY_VOID(planner.add_matrix(step, slot, text_of("{}.{}", step.name, std::string(without_weight(weight.name))),
                                  "Linear", weight.rows, weight.columns, false));
  }
  return {};
}

Status check_use(const model::Architecture& a, ForwardUse use) {
  if (a.is_encoder && use != ForwardUse::embed)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "{q} is an encoder, which predicts no next token: compare the embeddings of texts with those of the "
        "model that it was made from. Any config whose algorithms need no tokens quantizes it",
        a.family);
  if (!a.is_encoder && use == ForwardUse::embed)
    return error_at(ErrorCode::not_implemented, "/model_type",
                    "{q} is no encoder, of which embeddings are compared; these are: {}", a.family,
                    model::family_names(true));
  return {};
}

// Adds the steps of an encoder.
Status plan_encoder(Planner& planner, ForwardPlan& plan) {
  const model::Architecture& a = plan.architecture;
  std::string prefix;
  for (const char* candidate : kEncoderPrefixes)
    if (planner.has_layer(text_of("{}embeddings.word_embeddings", prefix = candidate))) break;
  const std::string tables = text_of("{}embeddings.", prefix);
  ForwardStep first;
  first.name = text_of("{}word_embeddings", tables);
  TRY_VOID(planner.add_matrix(first, kEmbeddingSlot, first.name, "Embedding", a.vocabulary, a.hidden, true));
  plan.steps.push_back(std::move(first));
  for (uint32_t layer = 0; layer < a.layers; ++layer) {
    ForwardStep step;
    step.name = text_of("{}encoder.layer.{}", prefix, layer);
    if (layer == 0) {
      const uint64_t positions = uint64_t{a.first_position} + a.max_positions;
      TRY_VOID(planner.add_matrix(step, kPositionsSlot, text_of("{}position_embeddings", tables), "Embedding",
                                  positions, a.hidden, false));
      TRY_VOID(planner.add_matrix(step, kTypesSlot, text_of("{}token_type_embeddings", tables), "Embedding",
                                  a.token_types, a.hidden, false));
      TRY_VOID(planner.add_vector(step, kEmbeddingNormSlot, text_of("{}LayerNorm.weight", tables), a.hidden));
      TRY_VOID(planner.add_vector(step, kEmbeddingNormBiasSlot, text_of("{}LayerNorm.bias", tables), a.hidden));
    }
    TRY_VOID(add_block(planner, step, a));
    plan.steps.push_back(std::move(step));
  }
  return {};
}

Status plan_decoder(Planner& planner, const json::Value& config, ForwardPlan& plan) {
  const model::Architecture& a = plan.architecture;
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
  plan.steps.push_back(std::move(first));
  for (uint32_t layer = 0; layer < a.layers; ++layer) {
    ForwardStep step;
    step.name = text_of("{}layers.{}", prefix.body, layer);
    TRY_VOID(add_block(planner, step, a));
    plan.steps.push_back(std::move(step));
  }
  ForwardStep last;
  last.name = head;
  TRY_VOID(planner.add_vector(last, kFinalNormSlot, text_of("{}norm.weight", prefix.body), a.hidden));
  const bool is_tied = a.tied_head || (config["tie_word_embeddings"].is_null() && !planner.has_layer(head));
  TRY_VOID(planner.add_matrix(last, kHeadSlot, is_tied ? embedding : head, is_tied ? "Embedding" : "Linear",
                              a.vocabulary, a.hidden, true));
  plan.steps.push_back(std::move(last));
  return {};
}

}  // namespace

Result<ForwardPlan> plan_forward(const ModelIndex& model, const json::Value& given, const TileBytes& tile_bytes,
                                 ForwardUse use) {
  const Format& format = model.format();
  if (format.has_graph)
    return error_at(
        ErrorCode::not_implemented, "model",
        "forward passes of ONNX models, and algorithms that are calibrated by them, are not implemented; use the "
        "model's safetensors");
  if (!format.can_calibrate && use == ForwardUse::calibrate)
    return error_at(ErrorCode::not_implemented, "model",
                    "{} models support evaluate and generate; calibration needs the model's safetensors", format.title);
  json::Value derived;
  if (given.is_null()) {
    if (!format.carries_config)
      return error_at(ErrorCode::config_invalid, "config.json",
                      "is not in the folder of the weights; a forward pass needs it");
    TRY(found, config_of(model));
    derived = std::move(found);
  }
  const json::Value &config = given.is_null() ? derived : given, none;
  ForwardPlan out;
  out.ends = ends_of(config["eos_token_id"]);
  TRY(architecture, model::read_architecture(config));
  out.architecture = std::move(architecture);
  const model::Architecture& a = out.architecture;
  TRY_VOID(check_use(a, use));
  TRY(reader, StoredWeightReader::create(format.carries_config ? none : config, &model));
  const conversion::Family* const family = format.has_ggml_names ? conversion::family_of(config) : nullptr;
  Planner planner(model, reader, tile_bytes, family, a.head_dim);
  TRY_VOID(a.is_encoder ? plan_encoder(planner, out) : plan_decoder(planner, config, out));
  return out;
}

json::Value forward_plan_json(const ForwardPlan& plan, size_t longest) {
  json::Array steps;
  uint64_t task = 0;
  for (const ForwardStep& step : plan.steps) {
    json::Array tensors;
    for (const ForwardTensor& tensor : step.tensors) {
      json::Value row;
      row.set("slot", static_cast<int64_t>(tensor.slot));
      row.set("name", tensor.task.name);
      row.set("task", task++);
      row.set("tiles", tensor.task.tiles);
      row.set("bytes", tensor.bytes);
      row.set("streamed", tensor.is_streamed);
      tensors.push_back(std::move(row));
    }
    json::Value row;
    row.set("name", step.name);
    row.set("floatBytes", step.float_bytes);
    row.set("keptBytes", step.kept_bytes);
    row.set("tensors", std::move(tensors));
    steps.push_back(std::move(row));
  }
  const model::Architecture& a = plan.architecture;
  json::Value out;
  out.set("ends", json::Value(plan.ends));
  out.set("family", a.family);
  out.set("vocabulary", static_cast<int64_t>(a.vocabulary));
  out.set("maxPositions", static_cast<int64_t>(a.max_positions));
  out.set("tokenBytes", model::ForwardPass::bytes_per_token(a));
  out.set("cacheBytes", model::ForwardPass::cache_bytes(a));
  out.set("stateBytes", model::ForwardPass::state_bytes(a));
  out.set("calibrationBytes", BlockCalibration::working_bytes(a));
  out.set("heldOutBytes", BlockCalibration::held_out_bytes(a));
  out.set("workingBytes", model::ForwardPass::working_bytes(a, longest));
  out.set("steps", std::move(steps));
  return out;
}

std::string packed_tasks(const ForwardPlan& plan) {
  TaskPacker packer;
  for (const ForwardStep& step : plan.steps)
    for (const ForwardTensor& tensor : step.tensors) packer.add(tensor.task);
  return packer.bytes();
}

}  // namespace wasmquant
