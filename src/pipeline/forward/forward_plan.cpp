// Steps are planned with their weights and tiles; config.json of a GGUF file is built from its metadata.
#include "pipeline/forward/forward_plan.h"

#include <utility>

#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/gguf_config.h"
#include "model/block_weights.h"
#include "model/forward_pass.h"
#include "pipeline/calibration/block_calibration.h"
#include "pipeline/forward/block_tensors.h"
#include "pipeline/forward/step_tensors.h"
#include "pipeline/stored/quantized_weight_reader.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant {
namespace {

using model::ModelPart;

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

// Modules outside the blocks under the names in a checkpoint.
class Names {
 public:
  Names(const StepTensors& tensors, const model::Architecture& a) : a_(a) {
    const List<std::string> prefixes = a.names.prefixes();
    for (const std::string& prefix : prefixes)
      for (const std::string& name : a.names.names_of(ModelPart::embedding)) {
        prefix_ = prefix;
        embedding_ = name;
        if (tensors.has_layer(of(ModelPart::embedding))) return;
      }
    prefix_ = prefixes[0];  // whose embedding is then missing
  }

  std::string of(ModelPart part) const {
    return prefix_ + (part == ModelPart::embedding ? embedding_ : a_.names.of(part));
  }
  std::string behind(ModelPart part) const { return prefix_ + a_.names_behind().of(part); }
  std::string layer(uint32_t number) const { return text_of("{}{}", prefix_, model::module_of_block(a_, number)); }

 private:
  const model::Architecture& a_;
  std::string prefix_, embedding_;
};

Status add_norm(StepTensors& tensors, ForwardStep& step, const model::Architecture& a, ModelPart part,
                const std::string& name, uint32_t weight, uint32_t bias) {
  if (a.names.has_weight(part)) TRY_VOID(tensors.add_vector(step, weight, name + ".weight", a.hidden));
  if (a.names.has_bias(part)) TRY_VOID(tensors.add_vector(step, bias, name + ".bias", a.hidden));
  return {};
}

// What is added to the embeddings of tokens.
Status add_tables(StepTensors& tensors, ForwardStep& step, const model::Architecture& a, const Names& names) {
  const uint64_t positions = uint64_t{a.first_position} + a.max_positions;
  if (a.names.has(ModelPart::positions))
    TRY_VOID(tensors.add_matrix(step, kPositionsSlot, names.of(ModelPart::positions), "Embedding", positions, a.hidden,
                                false));
  if (a.names.has(ModelPart::types))
    TRY_VOID(
        tensors.add_matrix(step, kTypesSlot, names.of(ModelPart::types), "Embedding", a.token_types, a.hidden, false));
  return add_norm(tensors, step, a, ModelPart::embedding_norm, names.of(ModelPart::embedding_norm), kEmbeddingNormSlot,
                  kEmbeddingNormBiasSlot);
}

// Inputs that layers have of their own, from tokens and their embeddings.
Status add_layer_tables(StepTensors& tensors, ForwardStep& step, const model::Architecture& a, const Names& names) {
  const uint64_t columns = model::layer_columns(a);
  if (columns == 0) return {};
  const std::string table = names.of(ModelPart::layer_table);
  if (tensors.is_gguf() && a.streams.count > 1) return StepTensors::is_arranged(table);
  TRY_VOID(tensors.add_matrix(step, kLayerTableSlot, table, "Embedding", a.layer_inputs.tokens, columns, true));
  for (const ForwardTensor& tensor : step.tensors)
    if (!tensor.is_streamed)
      return error_at(
          ErrorCode::not_implemented, tensor.task.name,
          "is a table whose rows are not stored apart, of which the forward pass of {} reads some: leave it "
          "unquantized",
          a.family);
  TRY_VOID(tensors.add_matrix(step, kLayerProjectionSlot, names.of(ModelPart::layer_projection), "Linear", columns,
                              a.hidden, false));
  step.kept_bytes = kNeverKept;  // the table is many times as large as the embedding
  return tensors.add_vector(step, kLayerTableNormSlot, names.of(ModelPart::layer_table_norm) + ".weight",
                            a.layer_inputs.width);
}

// Matrices of streams, but of the first.
Status add_streams(StepTensors& tensors, ForwardStep& step, const model::Architecture& a, const Names& names,
                   ModelPart part, uint32_t slot) {
  for (uint32_t stream = 0; stream + 1 < a.streams.count; ++stream) {
    std::string module = names.of(part);
    module.replace(module.find('#'), 1, std::to_string(stream));
    TRY_VOID(tensors.add_matrix(step, slot + stream, std::move(module), "Linear", a.hidden, a.hidden, false));
  }
  return {};
}

// Embeddings are the states behind it.
Status add_last_norm(StepTensors& tensors, const model::Architecture& a, const Names& names, ForwardPlan& plan) {
  if (!a.names.has_weight(ModelPart::final_norm)) return {};
  ForwardStep last;
  last.name = names.of(ModelPart::final_norm);
  TRY_VOID(add_norm(tensors, last, a, ModelPart::final_norm, last.name, kFinalNormSlot, kFinalNormBiasSlot));
  plan.steps.push_back(std::move(last));
  return {};
}

// The last norm and the head, which is the embedding if the model has no other.
Status add_head(StepTensors& tensors, const json::Value& config, const Names& names, const std::string& embedding,
                ForwardPlan& plan) {
  const model::Architecture& a = plan.architecture;
  const model::ModelNames& behind = a.names_behind();
  const std::string wrapped = "language_model." + behind.of(ModelPart::head);
  const std::string head = tensors.has_layer(wrapped) ? wrapped : behind.of(ModelPart::head);
  ForwardStep last;
  last.name = head;
  TRY_VOID(add_norm(tensors, last, a, ModelPart::final_norm, names.behind(ModelPart::final_norm), kFinalNormSlot,
                    kFinalNormBiasSlot));
  TRY_VOID(add_streams(tensors, last, a, names, ModelPart::stream_out, kStreamOutSlot));
  if (a.names.has_bias(ModelPart::head))
    TRY_VOID(tensors.add_vector(last, kHeadBiasSlot, head + ".bias", a.vocabulary));
  const bool may_be_tied = a.decoder.first > 0 || config["tie_word_embeddings"].is_null();
  const bool is_tied = a.tied_head || (may_be_tied && !tensors.has_layer(head));
  TRY_VOID(tensors.add_matrix(last, kHeadSlot, is_tied ? embedding : head, is_tied ? "Embedding" : "Linear",
                              a.vocabulary, a.hidden, true));
  plan.steps.push_back(std::move(last));
  return {};
}

Status plan_steps(StepTensors& tensors, const json::Value& config, ForwardUse use, ForwardPlan& plan) {
  const model::Architecture& a = plan.architecture;
  const Names names(tensors, a);
  const std::string embedding = names.of(ModelPart::embedding);
  ForwardStep first;
  first.name = embedding;
  TRY_VOID(tensors.add_matrix(first, kEmbeddingSlot, embedding, "Embedding", a.vocabulary, a.hidden, true));
  TRY_VOID(add_layer_tables(tensors, first, a, names));
  TRY_VOID(add_streams(tensors, first, a, names, ModelPart::stream_in, kStreamInSlot));
  TRY_VOID(add_tables(tensors, first, a, names));
  if (a.decoder.first > 0)
    TRY_VOID(tensors.add_vector(first, kEncoderNormSlot, names.of(ModelPart::final_norm) + ".weight", a.hidden));
  plan.steps.push_back(std::move(first));
  for (uint32_t layer = 0; layer < a.layers; ++layer) {
    ForwardStep step;
    step.name = names.layer(layer);
    TRY_VOID(add_block(tensors, step, a, layer));
    if (model::has_experts(a, layer)) TRY_VOID(add_experts(tensors, step, a));
    plan.steps.push_back(std::move(step));
  }
  if (use == ForwardUse::embed || use == ForwardUse::compare) return add_last_norm(tensors, a, names, plan);
  return add_head(tensors, config, names, embedding, plan);
}

// A folder has the modules of sentence-transformers, a GGUF file its pooling.
bool makes_embeddings(const ModelIndex& model) {
  if (!model.sibling_file("modules.json").empty()) return true;
  const auto& metadata = model.metadata(0);
  return std::any_of(metadata.begin(), metadata.end(),
                     [](const auto& entry) { return entry.first.ends_with(".pooling_type") && entry.second != "0"; });
}

// Checkpoints of T5 may be nothing but its encoder.
bool has_decoder(const StepTensors& tensors, const model::ModelNames& names) {
  return names.has(ModelPart::layers) &&
         tensors.has_layer(text_of("{}0.{}", names.of(ModelPart::layers), names.of(ModelPart::o)));
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
  const conversion::Family* const family = format.has_ggml_names ? conversion::family_of(config) : nullptr;
  auto read = model::read_architecture(config);
  // Several types share an architecture; its first row says whether files of it tell all. A folder always does.
  const conversion::Family* const first = family ? conversion::family_of_architecture(family->architecture) : nullptr;
  const bool routes = model.find("blk.0.ffn_gate_inp.weight") != nullptr;
  const bool tells = first != nullptr && first->converts_with(families::kTellsPass) && !routes;
  const bool is_known = read || read.error().code == ErrorCode::config_invalid;  // a key may be one that files lack
  if (is_known && format.has_ggml_names && (family == nullptr || (!tells && given.is_null())))
    return error_at(
        ErrorCode::not_implemented, "model",
        "{} files of {q} do not tell all that a forward pass needs to know: give the folder that the file was "
        "made from",
        format.title, family ? family->architecture : config["model_type"].as_string());
  TRY(architecture, std::move(read));
  out.architecture = std::move(architecture);
  const model::Architecture& a = out.architecture;
  TRY(reader, StoredWeightReader::create(format.carries_config ? none : config, &model));
  StepTensors tensors(model, reader, tile_bytes, family, a);
  const bool decodes = has_decoder(tensors, a.decoder.names);
  TRY_VOID(check_use(a, decodes, makes_embeddings(model), use));
  if (decodes && use != ForwardUse::embed) TRY_VOID(model::add_decoder(config, out.architecture));
  TRY_VOID(plan_steps(tensors, config, use, out));
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
      if (tensor.slot < model::kSlots && is_fixed(static_cast<model::Slot>(tensor.slot))) row.set("fixed", true);
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
  if (a.decoder.first > 0) out.set("splits", true);
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
