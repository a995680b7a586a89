#include "pipeline/plan/gguf_plan.h"

#include <algorithm>

#include "config/dialects/gguf_config.h"
#include "config/match/layer_type.h"
#include "config/match/name_match.h"
#include "formats/gguf/gguf_split.h"
#include "gguf_conversion/conversion.h"
#include "gguf_conversion/recipe.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/gguf_importance.h"
#include "pipeline/plan/untied_head.h"

namespace wasmquant {
namespace {

using conversion::Recipe;
using conversion::TypeChoice;
using conversion::TypeReason;

struct Pattern {
  NamePattern pattern;
  std::string text;
  std::optional<GgmlType> type;  // none: excluded
  bool is_used = false;          // matched a layer
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

// ".weight" and ".bias" are no part of a layer's name.
std::string_view layer_of(std::string_view tensor) { return layer_name_of(tensor).layer; }

class GgufPlanner {
 public:
  GgufPlanner(const ModelIndex& model, const Config& config, const PlanOptions& options, List<Diagnostic>& diagnostics)
      : model_(model),
        config_(config),
        gguf_(config::gguf_config(config)),
        options_(options),
        diagnostics_(diagnostics),
        importance_(options) {
    for (const std::string& name : gguf_.exclude) patterns_.push_back({NamePattern(name), name, std::nullopt});
    for (const auto& [name, type] : gguf_.layers) patterns_.push_back({NamePattern(name), name, type});
  }

  Result<Plan> run() {
    plan_.format = "gguf";
    TRY_VOID(check_algorithms());
    TRY_VOID(importance_.read());
    TRY_VOID(convert());
    add_untied_head();
    recipe_ = *conversion::recipe_named(gguf_.recipe);
    choose();
    conversion::describe_recipe(recipe_, converted_.metadata);
    importance_.describe(converted_.metadata);
    if (!options_.version.empty()) converted_.metadata.set_text(kVersionKey, options_.version);
    TRY_VOID(lay_out());
    TRY_VOID(importance_.report(gguf_.recipe, diagnostics_));
    return std::move(plan_);
  }

 private:
  // Block types find their own scales and codes, from the weights that algorithms leave.
  Status check_algorithms() const {
    const List<AskedAlgorithm> asked = asked_algorithms(config_);
    for (const AskedAlgorithm& algorithm : asked) {
      const std::string& name = algorithm.value["name"].as_string();
      bool changes_weights = false;
      for (const char* known :
           {"rotation", "cle", "smooth", "smoothquant", "activationequalization", "autosmoothquant", "awq"})
        changes_weights |= name == known;
      if (!changes_weights)
        return error_at(ErrorCode::format_unsupported, algorithm.where,
                        "{q} chooses codes or biases, and GGUF types choose their own; rotation, cle, smooth, "
                        "autosmoothquant and awq change weights before. What it makes can be written as "
                        "fake-quantized, and a GGUF file be made of that",
                        name);
      if (model_.is_gguf())
        return error_at(ErrorCode::format_unsupported, algorithm.where,
                        "{q} needs the model's folder, with config.json; this is a GGUF file", name);
    }
    if (const AskedAlgorithm* online = find_online_rotation(asked))
      return error_at(ErrorCode::format_unsupported, text_of("{}/r4", online->where),
                      "the runtime has to rotate the input of down_proj, and llama.cpp does not; set it to false");
    return {};
  }

  void add_untied_head() {
    const auto head = untied_head(model_, config_);
    if (!head) return;
    const std::vector<uint64_t>& shape = model_.tensors()[head->embedding].stored.shape;
    conversion::ConvertedTensor& tensor = converted_.tensors.emplace_back();
    tensor.source = head->embedding;
    tensor.name = kOutput;
    tensor.shape.assign(shape.begin(), shape.end());
    head_ = head->layer;
  }

  // What each tensor of the file will be, before types.
  Status convert() {
    if (model_.is_gguf()) {
      converted_.metadata = model_.gguf_metadata();
      gguf::erase_split_keys(converted_.metadata);
      for (uint32_t i = 0; i < model_.tensors().size(); ++i) {
        conversion::ConvertedTensor& tensor = converted_.tensors.emplace_back();
        tensor.source = i;
        tensor.name = model_.tensors()[i].stored.name;
        tensor.shape = model_.tensors()[i].stored.shape;
      }
      return {};
    }
    const conversion::ModelFiles files = model_files(model_, options_.name);
    if (files.config.empty())
      return error_at(ErrorCode::format_unsupported, "config.json",
                      "is missing: it says which model this is. Give the folder of the model, with config.json and the "
                      "tokenizer, or a GGUF file");
    std::vector<conversion::SourceTensor> tensors;
    for (const ModelTensor& tensor : model_.tensors()) tensors.push_back({tensor.stored.name, tensor.stored.shape});
    DiagnosticList remarks;
    auto converted = conversion::convert(files, tensors, remarks);
    for (Diagnostic& d : remarks.take()) diagnostics_.push_back(std::move(d));
    if (!converted) return converted.error();
    converted_ = std::move(*converted);
    return {};
  }

  // The first of the config's patterns that names the layer, as the model or as GGUF calls it.
  const Pattern* pattern_of(const conversion::ConvertedTensor& tensor) {
    const std::string_view source = tensor.source == conversion::ConvertedTensor::kGenerated
                                        ? std::string_view()
                                        : std::string_view(model_.tensors()[tensor.source].stored.name);
    const Pattern* found = nullptr;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      const NamePattern& pattern = patterns_[i].pattern;
      bool matches = false;
      for (const std::string_view name : {source, std::string_view(tensor.name)})
        matches |= !name.empty() && (pattern.matches(name) || pattern.matches(layer_of(name)));
      if (!matches) continue;
      patterns_[i].is_used = true;
      if (found == nullptr) found = &patterns_[i];
    }
    return found;
  }

  void choose() {
    std::vector<conversion::RecipeTensor> tensors;
    for (const conversion::ConvertedTensor& tensor : converted_.tensors) {
      const Pattern* pattern = pattern_of(tensor);
      chosen_by_.push_back(pattern);
      tensors.push_back({tensor.name, tensor.shape, pattern != nullptr ? pattern->type : std::nullopt});
    }
    if (conversion::needs_importance(recipe_) && !importance_.is_given())
      diagnostics_.push_back({Severity::warning, "needs-importance", "/recipe",
                              text_of("{} is meant for an importance matrix: llama-quantize refuses it without one, "
                                      "because the result is of little use",
                                      gguf_.recipe),
                              "give an imatrix or calibration, or take q2_k or a recipe with more bits"});
    conversion::RecipeOptions options;
    options.has_importance = importance_.is_given();
    options.pure = gguf_.pure;
    options.keeps_output = gguf_.keeps_output;
    options.output_type = gguf_.output_type;
    options.embedding_type = gguf_.embedding_type;
    choices_ = conversion::choose_types(recipe_, conversion::facts_of(converted_.metadata), options, tensors);
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (patterns_[i].is_used) continue;
      const bool excludes = i < gguf_.exclude.size();
      diagnostics_.push_back({Severity::warning, "pattern-unused",
                              excludes ? text_of("/exclude/{}", i) : text_of("/layers/{}", patterns_[i].text),
                              text_of("{q} matches no layer of this model", patterns_[i].text), ""});
    }
  }

  // The type that a tensor has, or gets when nothing asks for another.
  GgmlType own_type(const conversion::ConvertedTensor& tensor, bool excluded) const {
    const StorageDtype source = model_.tensors()[tensor.source].stored.dtype;
    if (excluded && small_float_of(source)) return GgmlType::bf16;  // holds all of their values
    if (model_.is_gguf() || excluded) return ggml_type_of(source).value_or(GgmlType::f32);
    return GgmlType::f32;
  }

  Reason reason_of(const TypeChoice& choice, const Pattern* pattern, GgmlType type,
                   const conversion::ConvertedTensor& tensor) const {
    const std::string_view name = info_of(type).name;
    if (pattern != nullptr && !pattern->type)
      return {Rule::excluded, "/exclude", text_of("excluded by {q}", pattern->text)};
    switch (choice.reason) {
      case TypeReason::kept:
        return {Rule::not_quantizable, "", "vectors, norms and other small tensors keep their type"};
      case TypeReason::chosen:
        return {Rule::layer_glob, pattern == nullptr ? "/output_type" : text_of("/layers/{}", pattern->text),
                pattern == nullptr ? std::string("the config's type for this tensor")
                                   : text_of("pattern {q} gives {}", pattern->text, name)};
      case TypeReason::rule:
        return {Rule::global, "/recipe", text_of("{} gives this tensor {}", gguf_.recipe, name)};
      case TypeReason::fallback:
        return {Rule::global, "/recipe",
                text_of("rows of {} are not a multiple of {} blocks of {}, so {}", tensor.shape.back(),
                        info_of(choice.wanted).name, info_of(choice.wanted).block + 0, name)};
      case TypeReason::recipe:
        break;
    }
    return {Rule::global, "/recipe", text_of("recipe {}", gguf_.recipe)};
  }

  Status add_tensor(size_t i, List<gguf::NewTensor>& entries) {
    const conversion::ConvertedTensor& tensor = converted_.tensors[i];
    const ModelTensor& source = model_.tensors()[tensor.source];
    const bool excluded = chosen_by_[i] != nullptr && !chosen_by_[i]->type;
    const bool kept = excluded || choices_[i].reason == TypeReason::kept;
    const GgmlType type = kept ? own_type(tensor, excluded) : choices_[i].type;

    PlannedTensor& planned = plan_.tensors.emplace_back();
    planned.tensor = tensor.source;
    if (!head_.empty() && tensor.name == kOutput) planned.name = head_ + ".weight";
    planned.weight = {source.layer, source.layer_type, tensor.shape, source.stored.dtype, PackMethod::reorder};
    if (!planned.name.empty()) planned.weight.layer = head_;
    planned.reason = reason_of(choices_[i], chosen_by_[i], type, tensor);
    TensorTask& task = planned.task;
    task.name = tensor.name;
    task.source = {source.file, source.stored.begin};
    task.source_bytes = source.stored.end - source.stored.begin;
    task.quantized = source.quantized;
    task.non_finite = config_.non_finite;
    if (tensor.rearrangement == conversion::Rearrangement::interleave) task.change.interleaved_rows = tensor.head_rows;
    task.change.is_transposed = tensor.rearrangement == conversion::Rearrangement::transpose;
    task.change.adds_one = tensor.plus_one;
    const StorageDtype stored = storage_dtype_of(type);
    if (task.quantized && task.change.is_transposed)
      return error_at(
          ErrorCode::not_implemented, source.stored.name,
          "is stored transposed and quantized, which cannot be decoded here; start from the unquantized model");
    if (stored == source.stored.dtype && !task.change.any() && !task.quantized) {
      task.is_copy = true;
      task.layout.components.push_back({Role::codes, tensor.name, stored, tensor.shape, task.source_bytes});
    } else if (!is_quantizable(source.stored.dtype, source.stored.shape) || !info_of(type).can_quantize() ||
               (source.stored.dtype == StorageDtype::F4 && task.change.is_transposed)) {
      return error_at(ErrorCode::format_unsupported, source.stored.name,
                      "holds {}, which cannot be read back to make {} of it; exclude the layer, or start from a file "
                      "with more bits",
                      info_of(source.stored.dtype).name, info_of(type).name);
    } else {
      task.layout = ggml_layout(tensor.shape, source.stored.dtype, type, tensor.name);
      if (task.change.interleaved_rows != 0) task.layout.whole_lines = task.change.interleaved_rows;
      if (task.quantized || small_float_of(source.stored.dtype)) ++requantized_;
      if (info_of(source.stored.dtype).is_ggml() && info_of(source.stored.dtype).block > 1) ++requantized_;
    }
    TRY_VOID(importance_.weigh(planned, tensor.name, type, plan_.requests));
    set_tiles(task, options_.tile_bytes);
    if (!task.is_copy && std::min(task.tile_lines, task.layout.rows) * task.layout.columns > kMaxTileElements)
      return error_at(ErrorCode::memory_budget, task.name, "its smallest tile has more than {} elements",
                      kMaxTileElements);
    entries.push_back({tensor.name, type, tensor.shape});
    for (const Component& component : planned.outputs()) planned.bytes_after += component.bytes;
    plan_.bytes_before += task.source_bytes;
    plan_.bytes_after += planned.bytes_after;
    if (info_of(type).block == 1) return {};
    uint64_t elements = 1;
    for (const uint64_t d : tensor.shape) elements *= d;
    ++plan_.quantized_count;
    plan_.quantized_elements += elements;
    plan_.quantized_bytes += planned.bytes_after;
    return {};
  }

  // Tensors that no source has come first: their bytes are known and stand in the prefix.
  Status lay_out() {
    List<gguf::NewTensor> entries;
    List<const conversion::ConvertedTensor*> generated;
    for (const conversion::ConvertedTensor& tensor : converted_.tensors) {
      if (tensor.source != conversion::ConvertedTensor::kGenerated) continue;
      generated.push_back(&tensor);
      entries.push_back({tensor.name, GgmlType::f32, tensor.shape});
    }
    for (size_t i = 0; i < converted_.tensors.size(); ++i)
      if (converted_.tensors[i].source != conversion::ConvertedTensor::kGenerated) TRY_VOID(add_tensor(i, entries));
    TRY(alignment, gguf::alignment_of(converted_.metadata));
    const std::span<const gguf::NewTensor> all(entries.data(), entries.size());
    List<uint32_t> first = {0};
    if (options_.gguf.shard_bytes != 0 && !entries.empty()) {
      TRY(parts, gguf::split_by_size(all, alignment, options_.gguf.shard_bytes));
      first = std::move(parts);
    }
    const auto count = static_cast<uint32_t>(first.size()), total = static_cast<uint32_t>(entries.size());
    const std::string stem =
        text_of("{}-{}", options_.name.empty() ? std::string("model") : options_.name, upper(gguf_.recipe));
    for (uint32_t part = 0; part < count; ++part) {
      const uint32_t begin = first[part], end = part + 1 < count ? first[part + 1] : total;
      TRY(header, gguf::write_header(
                      count == 1 ? converted_.metadata : gguf::part_metadata(converted_.metadata, part, count, total),
                      all.subspan(begin, end - begin)));
      PlannedFile file;
      file.name = count == 1 ? text_of("{}.gguf", stem) : gguf::part_name(stem, part + 1, count);
      file.bytes = header.file_bytes;
      file.prefix = std::move(header.bytes);
      for (uint32_t i = begin; i < end; ++i) {
        if (i < generated.size()) {
          file.prefix += generated[i]->data;
          file.prefix.resize(gguf::padded(file.prefix.size(), alignment));
          continue;
        }
        TensorTask& task = plan_.tensors[i - generated.size()].task;
        const uint64_t at = header.offsets[i - begin], after = at + task.layout.components.front().bytes;
        task.components.push_back({part, at});
        task.padding = static_cast<uint32_t>(gguf::padded(after, alignment) - after);
      }
      plan_.files.push_back(std::move(file));
    }
    if (requantized_ != 0) diagnostics_.push_back(requantized_warning(requantized_));
    return {};
  }

  static constexpr const char* kOutput = "output.weight";

  const ModelIndex& model_;
  const Config& config_;
  config::GgufConfig gguf_;
  const PlanOptions& options_;
  List<Diagnostic>& diagnostics_;
  List<Pattern> patterns_;
  conversion::Conversion converted_;
  Recipe recipe_ = Recipe::f32;
  List<TypeChoice> choices_;
  List<const Pattern*> chosen_by_;
  GgufImportance importance_;
  std::string head_;  // layer of the head that was the embedding
  uint64_t requantized_ = 0;
  Plan plan_;
};

}  // namespace

conversion::ModelFiles model_files(const ModelIndex& model, std::string_view name) {
  conversion::ModelFiles files;
  files.name = name;
  files.config = model.companion("config.json");
  files.pooling = model.companion("1_Pooling/config.json");
  files.tokenizer.tokenizer = model.companion("tokenizer.json");
  files.tokenizer.tokenizer_config = model.companion("tokenizer_config.json");
  files.tokenizer.chat_template = model.companion("chat_template.jinja");
  const std::string_view pieces = model.companion("tokenizer.model");
  files.tokenizer.sentencepiece = {reinterpret_cast<const uint8_t*>(pieces.data()), pieces.size()};
  return files;
}

Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const PlanOptions& options,
                            List<Diagnostic>& diagnostics) {
  return GgufPlanner(model, config, options, diagnostics).run();
}

}  // namespace wasmquant
