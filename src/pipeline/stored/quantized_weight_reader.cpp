// The rows of formats, the detection of a checkpoint's format, and the list of its weights.
#include "pipeline/stored/quantized_weight_reader.h"

#include <algorithm>

#include "config/match/layer_type.h"
#include "families/module_path.h"
#include "pipeline/model_index/storage_facts.h"
#include "pipeline/stored/leftover_tensors.h"

namespace wasmquant {

#define WASMQUANT_SOURCE_FORMAT(method, make) MakeSourceFormat make;
#include "tools/tools.def"

namespace {

struct Row {
  std::string_view method;
  MakeSourceFormat* make;
};
constexpr Row kFormats[] = {
#define WASMQUANT_SOURCE_FORMAT(method, make) {method, make},
#include "tools/tools.def"
};

constexpr std::string_view kPlain = "fake-quantized";

// An unquantized weight.
Result<StoredWeight> find_plain(const ModelIndex& model, const WeightDescription& weight) {
  const ModelTensor* tensor = tensor_of(model, weight.layer, "weight");
  if (tensor == nullptr) tensor = model.find(weight.layer);  // names without .weight, such as experts
  if (tensor == nullptr)
    return error_at(ErrorCode::tensor_missing, text_of("{}.weight", weight.layer), "is not in the quantized model");
  if (tensor->quantized) return *tensor->quantized;
  if (!is_quantizable(tensor->stored.dtype, tensor->stored.shape))
    return error_at(ErrorCode::dtype_unsupported, tensor->stored.name, "holds {} without a scale",
                    info_of(tensor->stored.dtype).name);
  StoredWeight found;
  found.format = kPlain;
  found.weight = weight;
  found.weight.source = tensor->stored.dtype;
  TRY(layout, checkpoint_format_named(kPlain)->layout(found.weight, {QuantizationSpec{}}));
  found.task.name = tensor->stored.name;
  found.task.layout = std::move(layout);
  if (tensor->stored.shape != weight.shape) return wrong_tensor(*tensor, kPlain, found.task.layout->components.front());
  found.task.components.push_back({tensor->file, tensor->stored.begin});
  return found;
}

// Whether no tensor is codes, or looks like them: weights that are not floats.
bool holds_values(const ModelIndex& model, const StoredWeightReader& reader) {
  return reader.is_original(model) &&
         std::all_of(model.tensors().begin(), model.tensors().end(), [&](const ModelTensor& tensor) {
           const StoredTensor& stored = tensor.stored;
           const bool is_weight = stored.shape.size() >= 2 && layer_name_of(stored.name).role == TensorRole::weight;
           return is_quantizable(stored.dtype) ? !small_float_of(stored.dtype)
                                               : !is_weight && why_not_values(model, tensor).empty();
         });
}

// This library writes rows that fill their words, and says in each file that it wrote it.
bool fills_words(const ModelIndex& model) {
  for (uint32_t file = 0; file < model.files().size(); ++file)
    for (const auto& [key, value] : model.metadata(file))
      if (key == kVersionKey) return true;
  return false;
}

}  // namespace

Result<StoredWeightReader> StoredWeightReader::create(const json::Value& document, const ModelIndex* model) {
  TRY(block, source_block(document, model));
  const bool is_folder = model != nullptr && !model->format().carries_config && !model->format().has_graph;
  std::string known;
  for (const Row& row : kFormats) {
    known += text_of("{}{}", known.empty() ? "" : ", ", row.method);
    if (row.method == block.method) return of_method(row.make, block, document, is_folder ? model : nullptr);
  }
  // Scaled floats need no config. A block may have outlived its weights.
  SourceBlock none;
  auto plain = of_method(scaled_floats_source, none, document, is_folder ? model : nullptr);
  if (!block.is_declared() || (plain && is_folder && holds_values(*model, *plain))) {
    if (plain && block.is_declared())
      plain->remarks_.push_back({Severity::note, "no-effect", block.where,
                                 text_of("says that the weights are quantized (quant_method {q}), and all of them are "
                                         "plain values: the block is left out",
                                         block.method),
                                 ""});
    return plain;
  }
  return error_at(ErrorCode::format_unknown, block.where + "/quant_method",
                  "found {q}; this version decodes {}; use the checkpoint that this one was made from", block.method,
                  known);
}

Result<StoredWeightReader> StoredWeightReader::of_method(MakeSourceFormat* make, const SourceBlock& block,
                                                         const json::Value& document, const ModelIndex* model) {
  StoredWeightReader reader;
  TRY_VOID(check_fields(block, document, reader.remarks_));
  auto made = make(block.value);
  if (!made) {
    constexpr std::string_view kUsual = "/quantization_config";
    Error error = std::move(made.error());
    const bool is_pointer = block.where.starts_with('/');
    if (!is_pointer)
      error.where = block.where;
    else if (error.where.starts_with(kUsual))
      error.where = block.where + error.where.substr(kUsual.size());
    else if (!error.where.starts_with(block.where) && (error.where.empty() || error.where.starts_with('/')))
      error.where = block.where + error.where;
    return error;
  }
  reader.format_ = std::move(*made);
  reader.lengths_ = RowLengths(document);
  if (model != nullptr) TRY_VOID(check_leftovers(*model, reader.roles_of(*model), block.is_declared()));
  return reader;
}

Result<StoredWeight> StoredWeightReader::find(const ModelIndex& model, const WeightDescription& weight) const {
  auto found = format_->find(model, weight);
  if (!found) {
    Error error = std::move(found.error());
    if (error.where.empty()) error.where = weight.layer;
    return error;
  }
  if (*found) return std::move(**found);
  for (const char* part : {"weight", "qweight", "weight_packed"})
    if (const ModelTensor* codes = tensor_of(model, weight.layer, part); codes != nullptr && are_codes(model, *codes))
      return error_at(
          ErrorCode::tensor_missing, codes->stored.name,
          "holds {} codes without a scale; add the file that has it, or start from the checkpoint that this "
          "one was made from",
          describe(codes->stored.dtype, codes->stored.shape));
  return find_plain(model, weight);
}

List<StoredRole> StoredWeightReader::roles_of(const ModelIndex& model) const {
  List<StoredRole> roles;
  for (const ModelTensor& tensor : model.tensors()) roles.push_back(role_of(model, tensor));
  return roles;
}

bool StoredWeightReader::has_codes(const ModelIndex& model) const {
  for (const ModelTensor& tensor : model.tensors())
    if (are_codes(model, tensor)) return true;
  return false;
}

// Scales of the key-value cache belong to no weight: they are kept.
StoredRole StoredWeightReader::role_of(const ModelIndex& model, const ModelTensor& tensor) const {
  return families::is_cache_scale(tensor.stored.name) ? StoredRole::plain : format_->role_of(model, tensor);
}

bool StoredWeightReader::is_original(const ModelIndex& model) const {
  return std::all_of(model.tensors().begin(), model.tensors().end(),
                     [&](const ModelTensor& tensor) { return role_of(model, tensor) == StoredRole::plain; });
}

List<DecodedTensor> StoredWeightReader::decoded_tensors(const ModelIndex& model) const {
  List<DecodedTensor> out;
  for (const ModelTensor& tensor : model.tensors()) {
    const StoredTensor& stored = tensor.stored;
    const StoredRole use = role_of(model, tensor);
    if (use == StoredRole::part) continue;
    if (use == StoredRole::plain) {
      out.push_back({stored.name,
                     {std::string(layer_name_of(stored.name).layer), tensor.layer_type, stored.shape, stored.dtype},
                     &tensor});
      continue;
    }
    DecodedTensor original;
    original.name = format_->weight_name(tensor);
    const std::string layer(layer_name_of(original.name).layer);
    const List<std::vector<uint64_t>> shapes = format_->possible_shapes(model, tensor);
    for (const std::vector<uint64_t>& shape : shapes) {
      WeightDescription weight{layer, std::string(layer_type_of(original.name, shape)), shape, StorageDtype::F32,
                               pack_method()};
      // with several shapes, the first that fits; with one, find() reports the mismatch later
      if (shapes.size() > 1 && !find(model, weight)) continue;
      original.weight = std::move(weight);
      break;
    }
    if (original.weight.shape.empty()) original.weight.layer = layer;
    out.push_back(std::move(original));
  }
  find_lengths(model, out);
  return out;
}

void StoredWeightReader::find_lengths(const ModelIndex& model, List<DecodedTensor>& tensors) const {
  List<std::pair<DecodedTensor*, uint64_t>> unsure;
  for (DecodedTensor& tensor : tensors)
    if (const uint64_t codes = tensor.plain == nullptr ? format_->codes_per_word(model, tensor.weight) : 1; codes > 1)
      unsure.push_back({&tensor, codes});
  if (unsure.empty() || fills_words(model)) return;
  RowLengths lengths = lengths_;
  for (const DecodedTensor& tensor : tensors) {
    const std::vector<uint64_t>& shape = tensor.weight.shape;
    if (shape.empty()) continue;
    if (tensor.weight.layer_type == "Embedding")
      lengths.add_hidden(shape.back());
    else
      lengths.add_rows(tensor.weight.layer, shape.front());
    if (tensor.plain != nullptr && shape.size() > 1) lengths.add(shape.back());
  }
  for (auto& [tensor, codes] : unsure) {
    std::vector<uint64_t>& shape = tensor->weight.shape;
    shape.back() = lengths.of(tensor->weight.layer, shape.back(), codes);
    if (shape.back() == 0) shape.clear();
  }
}

}  // namespace wasmquant
