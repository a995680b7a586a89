// Steps are planned with their weights and tiles; config.json of a GGUF file is built from its metadata.
#include "pipeline/forward/forward_plan.h"

#include <utility>

#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/gguf_config.h"
#include "gguf_conversion/tensors/arranged_tensors.h"
#include "model/block_weights.h"
#include "model/forward_pass.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/stored/quantized_weight_reader.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant {
namespace {

using model::ModelPart;

constexpr uint64_t kNeverKept = uint64_t{1} << 52;

std::string_view without_weight(std::string_view name) { return name.substr(0, name.rfind('.')); }

/// A tensor under the name in its file.
struct StoredName {
  std::string name;
  ValueTransform change;     // to be reverted
  int64_t expert = -1;       // which of those that are stacked in it
  bool is_arranged = false;  // in another way than `change` reverts
};

class Planner {
 public:
  /// `family`: of a GGUF model, else null.
  Planner(const ModelIndex& index, const StoredWeightReader& reader, const TileBytes& tile_bytes,
          const conversion::Family* family, const model::Architecture& a)
      : index_(index), reader_(reader), tile_bytes_(tile_bytes), family_(family), a_(a) {}

  bool is_gguf() const noexcept { return family_ != nullptr; }
  static Error is_arranged(const std::string& name) {
    return error_at(ErrorCode::not_implemented, name,
                    "has its values in another order in GGUF than the pass reads them: run the original model");
  }
  bool has_layer(const std::string& layer) const noexcept {
    if (family_ != nullptr) return index_.find(stored(text_of("{}.weight", layer)).name) != nullptr;
    return index_.find(layer + ".weight") != nullptr || index_.find(layer + ".weight_packed") != nullptr;
  }

  /// Adds a matrix [rows, columns] in any storage.
  Status add_matrix(ForwardStep& step, uint32_t slot, std::string layer, const char* type, uint64_t rows,
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

  bool has_tensor(const std::string& name) const noexcept { return index_.find(name) != nullptr; }

  /// Adds a matrix [rows, columns] of a tensor whose values are plain and of this shape, from an element on.
  Status add_slice(ForwardStep& step, uint32_t slot, const std::string& name, const std::vector<uint64_t>& shape,
                   uint64_t first, uint64_t rows, uint64_t columns) {
    const ModelTensor* tensor = index_.find(name);
    if (tensor == nullptr) return missing(name);
    const StoredTensor& stored = tensor->stored;
    if (stored.shape != shape) return wrong_shape(*tensor, shape);
    if (!is_quantizable(stored.dtype))
      return error_at(ErrorCode::dtype_unsupported, stored.name, "holds {}; a forward pass needs F32, F16 or BF16 here",
                      info_of(stored.dtype).name);
    TRY(task, plain_task(*tensor, {name, "Linear", {rows, columns}, stored.dtype}));
    task.components[0].offset += first * info_of(stored.dtype).bits / 8;
    return add(step, slot, std::move(task), false);
  }

  /// Adds a matrix of a tensor [experts, rows, columns] in any storage that keeps them apart.
  Status add_one_of(ForwardStep& step, uint32_t slot, const std::string& name, const std::vector<uint64_t>& shape,
                    uint64_t expert) {
    if (family_ != nullptr && index_.find(name) == nullptr) return missing(name);
    const std::string layer(family_ != nullptr ? without_weight(name) : name);
    TRY(all, reader_.find(index_, {layer, "Linear", shape, StorageDtype::F32, reader_.pack_method()}));
    const auto one = wasmquant::expert_of(all, expert, shape[0]);
    if (one == nullptr)
      return error_at(ErrorCode::format_unsupported, name, "stores its experts so that none can be read by itself");
    TensorTask task = one->task;
    return add(step, slot, std::move(task), false);
  }

  Status add_vector(ForwardStep& step, uint32_t slot, std::string name, uint64_t length) {
    StoredName at = stored(std::move(name));
    const ModelTensor* tensor = index_.find(at.name);
    if (tensor == nullptr) return missing(at.name);
    const StoredTensor& stored = tensor->stored;
    if (stored.shape != std::vector<uint64_t>{length} && stored.shape != std::vector<uint64_t>{1, length})
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

 private:
  /// Of values as they are.
  static Result<TensorTask> plain_task(const ModelTensor& tensor, const WeightDescription& weight) {
    constexpr const char* kPlainFormat = "fake-quantized";
    TRY(layout, checkpoint_format_named(kPlainFormat)->layout(weight, {QuantizationSpec{}}));
    TensorTask task;
    task.name = tensor.stored.name;
    task.components.push_back({tensor.file, tensor.stored.begin});
    task.layout = std::move(layout);
    return task;
  }

  /// Maps a transformers name.
  StoredName stored(std::string name) const {
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
  const model::Architecture& a_;
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
Status add_block(Planner& planner, ForwardStep& step, const model::Architecture& a, uint32_t layer) {
  for (const model::BlockWeight& weight : model::block_weights(a, layer)) {
    const auto slot = static_cast<uint32_t>(weight.slot);
    if (weight.is_plain && planner.is_gguf()) return Planner::is_arranged(text_of("{}.{}", step.name, weight.name));
    if (weight.is_plain) {
      std::vector<uint64_t> shape = {weight.rows, weight.columns};
      if (weight.slot == model::Slot::convolution) shape.insert(shape.begin() + 1, 1);
      TRY_VOID(planner.add_slice(step, slot, text_of("{}.{}", step.name, weight.name), shape, 0, weight.rows,
                                 weight.columns));
    } else if (weight.rows == 0)
      TRY_VOID(planner.add_vector(step, slot, text_of("{}.{}", step.name, weight.name), weight.columns));
    else
      TRY_VOID(planner.add_matrix(step, slot, text_of("{}.{}", step.name, std::string(without_weight(weight.name))),
                                  "Linear", a.is_transposed ? weight.columns : weight.rows,
                                  a.is_transposed ? weight.rows : weight.columns, false));
  }
  return {};
}

// Matrices of one expert in tensors of all.
Status add_fused_expert(Planner& planner, ForwardStep& step, const model::Architecture& a, uint32_t expert) {
  const uint64_t experts = a.routing.experts, wide = a.routing.width, hidden = a.hidden, size = wide * hidden;
  const uint32_t slot = kExpertSlots + 3 * expert;
  const auto name = [&](ModelPart part) { return text_of("{}.{}", step.name, a.names.of(part)); };
  if (a.routing.gate_limit > 0) {
    TRY_VOID(planner.add_one_of(step, slot, name(ModelPart::experts_gate_up), {experts, hidden, 2 * wide}, expert));
    TRY_VOID(planner.add_one_of(step, slot + 2, name(ModelPart::experts_down), {experts, wide, hidden}, expert));
    step.tensors.back().is_streamed = true;
    return {};
  }
  for (const uint32_t half : {0u, 1u})
    TRY_VOID(planner.add_slice(step, slot + half, name(ModelPart::experts_gate_up), {experts, 2 * wide, hidden},
                               (2 * expert + half) * size, wide, hidden));
  TRY_VOID(planner.add_slice(step, slot + 2, name(ModelPart::experts_down), {experts, hidden, wide}, expert * size,
                             hidden, wide));
  step.tensors.back().is_streamed = true;
  return {};
}

// Each runs once its last matrix is loaded, after the router, and is then replaced by the next.
Status add_experts(Planner& planner, ForwardStep& step, const model::Architecture& a) {
  step.tensors.back().is_streamed = true;  // the router
  const uint64_t others = step.float_bytes;
  const std::string fused = text_of("{}.{}", step.name, a.names.of(ModelPart::experts_gate_up));
  const bool is_fused =
      a.routing.gate_limit > 0 || (a.names.has(ModelPart::experts_gate_up) && planner.has_tensor(fused));
  for (uint32_t expert = 0; expert < a.routing.experts; ++expert) {
    step.float_bytes = others;
    if (is_fused) {
      TRY_VOID(add_fused_expert(planner, step, a, expert));
      continue;
    }
    uint32_t slot = kExpertSlots + 3 * expert;
    for (const model::BlockWeight& weight : model::block_weights(model::expert_of(a, expert)))
      TRY_VOID(planner.add_matrix(step, slot++, text_of("{}.{}", step.name, std::string(without_weight(weight.name))),
                                  "Linear", weight.rows, weight.columns, false));
    step.tensors.back().is_streamed = true;
  }
  const auto name_of = [&](uint32_t expert, size_t part) {
    return text_of("{}.{}", step.name, model::block_weights(model::expert_of(a, expert))[part].name);
  };
  const bool alternates = a.routing.gate_limit > 0;
  for (ForwardTensor& tensor : step.tensors) {
    if (tensor.slot < kExpertSlots || !(alternates || a.names.has(ModelPart::expert_gate))) continue;
    const uint32_t number = tensor.slot - kExpertSlots, part = number % 3;
    if (alternates) {
      tensor.name = name_of(number / 3, part / 2);
      tensor.stack =
          text_of("{}.{}", step.name, a.names.of(part == 2 ? ModelPart::experts_down : ModelPart::experts_gate_up));
      tensor.alternates = part == 0;
      continue;
    }
    tensor.name = name_of(number / 3, part);
    tensor.stack = is_fused || planner.is_gguf() ? tensor.task.name : name_of(0, part);
  }
  step.kept_bytes = kNeverKept;
  return {};
}

Status check_use(const model::Architecture& a, ForwardUse use) {
  if (a.routing.experts > 0 && use == ForwardUse::measure)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "choosing a spec for each layer is not implemented for mixtures of experts such as {q}; calibration "
        "of a given config, evaluate and generate are",
        a.family);
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

// Modules outside the blocks under the names in a checkpoint.
class Names {
 public:
  Names(const Planner& planner, const model::ModelNames& names) : names_(names) {
    const List<std::string> prefixes = names.prefixes();
    for (const std::string& prefix : prefixes) {
      prefix_ = prefix;
      if (planner.has_layer(of(ModelPart::embedding))) return;
    }
    prefix_ = prefixes[0];  // whose embedding is then missing
  }

  std::string of(ModelPart part) const { return prefix_ + names_.of(part); }
  std::string layer(uint32_t number) const { return text_of("{}{}{}", prefix_, names_.of(ModelPart::layers), number); }

 private:
  const model::ModelNames& names_;
  std::string prefix_;
};

Status add_norm(Planner& planner, ForwardStep& step, const model::Architecture& a, ModelPart part,
                const std::string& name, uint32_t weight, uint32_t bias) {
  if (a.names.has_weight(part)) TRY_VOID(planner.add_vector(step, weight, name + ".weight", a.hidden));
  if (a.names.has_bias(part)) TRY_VOID(planner.add_vector(step, bias, name + ".bias", a.hidden));
  return {};
}

// What is added to the embeddings of tokens.
Status add_tables(Planner& planner, ForwardStep& step, const model::Architecture& a, const Names& names) {
  const uint64_t positions = uint64_t{a.first_position} + a.max_positions;
  if (a.names.has(ModelPart::positions))
    TRY_VOID(planner.add_matrix(step, kPositionsSlot, names.of(ModelPart::positions), "Embedding", positions, a.hidden,
                                false));
  if (a.names.has(ModelPart::types))
    TRY_VOID(
        planner.add_matrix(step, kTypesSlot, names.of(ModelPart::types), "Embedding", a.token_types, a.hidden, false));
  return add_norm(planner, step, a, ModelPart::embedding_norm, names.of(ModelPart::embedding_norm), kEmbeddingNormSlot,
                  kEmbeddingNormBiasSlot);
}

Status plan_steps(Planner& planner, const json::Value& config, ForwardPlan& plan) {
  const model::Architecture& a = plan.architecture;
  const Names names(planner, a.names);
  const std::string embedding = names.of(ModelPart::embedding);
  ForwardStep first;
  first.name = embedding;
  TRY_VOID(planner.add_matrix(first, kEmbeddingSlot, embedding, "Embedding", a.vocabulary, a.hidden, true));
  TRY_VOID(add_tables(planner, first, a, names));
  plan.steps.push_back(std::move(first));
  for (uint32_t layer = 0; layer < a.layers; ++layer) {
    ForwardStep step;
    step.name = names.layer(layer);
    TRY_VOID(add_block(planner, step, a, layer));
    if (model::has_experts(a, layer)) TRY_VOID(add_experts(planner, step, a));
    plan.steps.push_back(std::move(step));
  }
  if (a.is_encoder) return {};
  const std::string wrapped = "language_model." + a.names.of(ModelPart::head);
  const std::string head = planner.has_layer(wrapped) ? wrapped : a.names.of(ModelPart::head);
  ForwardStep last;
  last.name = head;
  TRY_VOID(add_norm(planner, last, a, ModelPart::final_norm, names.of(ModelPart::final_norm), kFinalNormSlot,
                    kFinalNormBiasSlot));
  if (a.names.has_bias(ModelPart::head))
    TRY_VOID(planner.add_vector(last, kHeadBiasSlot, head + ".bias", a.vocabulary));
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
  // Several types share an architecture; its first row says whether files of it tell all. A folder always does.
  const conversion::Family* const first = family ? conversion::family_of_architecture(family->architecture) : nullptr;
  const bool routes = model.find("blk.0.ffn_gate_inp.weight") != nullptr;
  const bool tells = first != nullptr && first->converts_with(families::kTellsPass) && !routes;
  if (format.has_ggml_names && (family == nullptr || (!tells && given.is_null())))
    return error_at(
        ErrorCode::not_implemented, "model",
        "{} files of {q} do not tell all that a forward pass needs to know: give the folder that the file was "
        "made from",
        format.title, a.family);
  Planner planner(model, reader, tile_bytes, family, a);
  TRY_VOID(plan_steps(planner, config, out));
  return out;
}

std::pair<std::string, int64_t> gguf_layer(const std::string& family, std::string_view layer) {
  json::Value config;
  config.set("model_type", family);
  const conversion::Family* const row = conversion::family_of(config);
  if (row == nullptr) return {"", -1};
  const conversion::TensorMatch match = conversion::match_tensor(*row, text_of("{}.weight", layer));
  return {std::string(without_weight(match.name)), match.expert};
}

json::Value forward_plan_json(const ForwardPlan& plan, size_t longest) {
  json::Array steps;
  uint64_t task = 0;
  for (const ForwardStep& step : plan.steps) {
    json::Array tensors;
    for (const ForwardTensor& tensor : step.tensors) {
      json::Value row;
      row.set("slot", static_cast<int64_t>(tensor.slot));
      row.set("name", tensor.name.empty() ? tensor.task.name : tensor.name);
      if (!tensor.stack.empty()) {
        row.set("stack", tensor.stack);
        row.set("part", static_cast<int64_t>((tensor.slot - kExpertSlots) % 3));
        if (tensor.alternates) row.set("alternates", true);
      }
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
