// The rows of formats, the detection of a checkpoint's format, and the list of its weights.
#include "pipeline/stored/quantized_weight_reader.h"

#include <algorithm>

#include "config/match/layer_type.h"
#include "families/module_path.h"

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

// MLX is unnamed: its object has bits or a mode, but no quant_method.
bool is_mlx(const json::Value& block) {
  return !block["quant_method"].is_string() && block["group_size"].is_integer() &&
         (block["bits"].is_integer() || block["mode"].is_string());
}

// Where tools wrote their block before config.json held it, and what it does not say itself.
struct OldFile {
  const char *name, *method;
};
constexpr OldFile kOldFiles[] = {{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}};

// An unquantized weight.
Result<StoredWeight> find_plain(const ModelIndex& model, const WeightDescription& weight) {
  const ModelTensor* tensor = tensor_of(model, weight.layer, "weight");
  if (tensor == nullptr) tensor = model.find(weight.layer);  // names without .weight, such as experts
  if (tensor == nullptr)
    return error_at(ErrorCode::tensor_missing, text_of("{}.weight", weight.layer), "is not in the quantized model");
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

// This library writes rows that fill their words, and says in each file that it wrote it.
bool fills_words(const ModelIndex& model) {
  for (uint32_t file = 0; file < model.files().size(); ++file)
    for (const auto& [key, value] : model.metadata(file))
      if (key == kVersionKey) return true;
  return false;
}

}  // namespace

Result<StoredWeightReader> StoredWeightReader::create(const json::Value& document, const ModelIndex* model) {
  const auto sibling = [&](const char* name) {
    return model == nullptr ? std::string_view() : model->sibling_file(name);
  };
  const json::Value* block = &document["quantization_config"];
  std::string where = "/quantization_config";
  if (const json::Value& nested = document["text_config"]["quantization_config"];
      block->is_null() && nested.is_object()) {  // multimodal models
    block = &nested;
    where = "/text_config/quantization_config";
  }
  std::string_view method = (*block)["quant_method"].as_string();
  json::Value old;
  if (method.empty() && (is_mlx(document["quantization"]) || is_mlx(*block))) {
    if (!is_mlx(*block)) block = &document["quantization"];
    method = "mlx";
  } else if (method.empty() && (*block)["quant_algo"].is_string()) {  // ModelOpt's, of older versions
    method = "modelopt";
  } else if (block->is_null() && !sibling("hf_quant_config.json").empty()) {
    TRY(parsed, json::parse(sibling("hf_quant_config.json")));
    if (parsed["quantization"].is_object()) method = "modelopt";
  }
  for (const OldFile& file : kOldFiles) {
    if (!block->is_null() || !method.empty() || sibling(file.name).empty()) continue;
    auto parsed = json::parse(sibling(file.name));
    if (!parsed) return error_at(parsed.error().code, file.name, "{}", parsed.error().message);
    if (!(*parsed)["quant_method"].is_string()) parsed->set("quant_method", file.method);
    old = std::move(*parsed);
    block = &old;
    where = file.name;
    method = (*block)["quant_method"].as_string();
  }
  StoredWeightReader reader;
  if (block->is_null() && method.empty()) method = "fp8";  // scaled floats need no config
  std::string known;
  for (const Row& row : kFormats) {
    if (row.method == method) {
      auto made = row.make(*block);
      if (!made && block == &old) made.error().where = where;
      if (!made) return std::move(made.error());
      reader.format_ = std::move(*made);
      reader.lengths_ = RowLengths(document);
      return reader;
    }
    known += text_of("{}{}", known.empty() ? "" : ", ", row.method);
  }
  return error_at(ErrorCode::format_unknown, where + "/quant_method",
                  "found {q}; this version decodes {}; use the checkpoint that this one was made from", method, known);
}

Result<StoredWeight> StoredWeightReader::find(const ModelIndex& model, const WeightDescription& weight) const {
  auto found = format_->find(model, weight);
  if (!found) {
    Error error = std::move(found.error());
    if (error.where.empty()) error.where = weight.layer;
    return error;
  }
  if (*found) return std::move(**found);
  return find_plain(model, weight);
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
