// Plans a GGUF file: the type of each tensor by recipe, patterns and shape, importance, then the files.
#include "config/dialects/gguf_config.h"
#include "config/match/layer_type.h"
#include "config/match/name_match.h"
#include "core/message.h"
#include "formats/gguf/gguf_split.h"
#include "formats/part_name.h"
#include "gguf_conversion/recipe.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/plan/gguf_importance.h"
#include "pipeline/plan/output_format.h"
#include "pipeline/plan/output_planner.h"
#include "pipeline/plan/tied_head.h"

namespace wasmquant {
namespace {

using conversion::ConvertedTensor;
using conversion::TypeChoice;
using conversion::TypeReason;

struct TypePattern {
  NamePattern pattern;
  std::string text;
  std::string where;             // JSON pointer
  std::optional<GgmlType> type;  // empty: excluded
  bool is_used = false;          // matched a layer
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

// "llama-Q8_0" and "llama.Q8_0" without the type that the model had.
std::string_view without_type(std::string_view name) {
  const size_t at = name.find_last_of("-.");
  if (at == name.npos || at == 0) return name;
  std::string type(name.substr(at + 1));
  for (char& c : type)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return conversion::recipe_named(type) ? name.substr(0, at) : name;
}

class GgufPlanner final : public OutputPlanner {
 public:
  GgufPlanner(const ModelIndex& model, const Config& config, const OutputFormat& format, const PlanOptions& options,
              List<Diagnostic>& diagnostics)
      : OutputPlanner(format.name, model, config, options, diagnostics),
        gguf_(config::gguf_config(config)),
        importance_(options) {
    for (const std::string& name : gguf_.exclude)
      patterns_.push_back({NamePattern(name), name, text_of("/exclude/{}", patterns_.size()), std::nullopt});
    for (const auto& [name, type] : gguf_.layers)
      patterns_.push_back({NamePattern(name), name, text_of("/layers/{}", name), type});
  }

 private:
  Status prepare() override {
    TRY_VOID(check_algorithms());
    TRY_VOID(importance_.read());
    TRY(converted, convert_model(model_, options_.name, diagnostics_));
    converted_ = std::move(converted);
    head_ = untied_head(model_, config_);
    if (!head_) return {};
    ConvertedTensor& tensor = converted_.tensors.emplace_back();
    tensor.source = head_->embedding;
    tensor.name = kOutput;
    tensor.shape = model_.tensors()[head_->embedding].stored.shape;
    return {};
  }

  // Block types derive their own scales and codes from the weights that algorithms produce.
  Status check_algorithms() const {
    for (const RequestedAlgorithm& algorithm : requested_) {
      const std::string& name = algorithm.value["name"].as_string();
      const auto method = method_named(name);
      if (!method || !precedes_rounding(*method))
        return error_at(ErrorCode::format_unsupported, algorithm.where,
                        "{q} chooses codes or biases, and GGUF types choose their own; {} change weights before. To "
                        "use its result, write it as fake-quantized first, then convert that to GGUF",
                        name, names_before_rounding());
      if (!model_.format().can_calibrate)
        return error_at(ErrorCode::format_unsupported, algorithm.where,
                        "{q} needs the model's folder, with config.json; this is a {} file", name,
                        model_.format().title);
    }
    if (const RequestedAlgorithm* online = find_online_rotation(requested_))
      return error_at(ErrorCode::format_unsupported, text_of("{}/r4", online->where),
                      "the runtime has to rotate the input of down_proj, and llama.cpp does not; set it to false");
    return {};
  }

  void add_tensors() override {
    List<const TypePattern*> chosen_by;
    std::vector<conversion::RecipeTensor> tensors;
    for (const ConvertedTensor& tensor : converted_.tensors) {
      const TypePattern* const pattern = pattern_of(tensor);
      chosen_by.push_back(pattern);
      tensors.push_back({tensor.name, tensor.shape, pattern != nullptr ? pattern->type : std::nullopt});
    }
    const conversion::RecipeOptions options{gguf_.pure, importance_.is_given(), gguf_.keeps_output, gguf_.output_type,
                                            gguf_.embedding_type};
    const List<TypeChoice> choices =
        conversion::choose_types(recipe_, conversion::facts_of(converted_.metadata), options, tensors);
    for (size_t i = 0; i < choices.size(); ++i)
      if (converted_.tensors[i].source != ConvertedTensor::kGenerated)
        add_tensor(converted_.tensors[i], choices[i], chosen_by[i]);
  }

  void add_tensor(const ConvertedTensor& tensor, const TypeChoice& choice, const TypePattern* pattern) {
    const ModelTensor& source = model_.tensors()[tensor.source];
    const bool excluded = pattern != nullptr && !pattern->type;
    const bool kept = excluded || choice.reason == TypeReason::kept;
    const GgmlType type = kept ? own_type(tensor, excluded) : choice.type;
    PlannedTensor& planned = begin(tensor.source, source);
    planned.task.name = tensor.name;
    planned.weight.shape = tensor.shape;
    planned.reason = reason_of(choice, pattern, type, tensor);
    if (!kept && choice.reason == TypeReason::fallback) add_fallback(planned, choice, tensor);
    if (head_ && tensor.name == kOutput) {
      planned.weight.layer = head_->layer;
      planned.name = head_->layer + ".weight";
    }
    finish(planned, lay_out(planned, tensor, source.stored, type));
  }

  void add_fallback(const PlannedTensor& planned, const TypeChoice& choice, const ConvertedTensor& tensor) {
    uint64_t elements = 1;
    for (const uint64_t d : tensor.shape) elements *= d;
    const auto bytes_in = [&](GgmlType type) { return info_of(type).bytes_of(elements); };
    if (fallbacks_.count == 0) first_fallback_ = planned.reason->text;
    fallbacks_.add(tensor.name);
    fallback_bytes_ += static_cast<int64_t>(bytes_in(choice.type)) - static_cast<int64_t>(bytes_in(choice.wanted));
  }

  // The config's first pattern that matches the layer's model or GGUF name.
  const TypePattern* pattern_of(const ConvertedTensor& tensor) {
    const std::string_view source = tensor.source == ConvertedTensor::kGenerated
                                        ? std::string_view()
                                        : std::string_view(model_.tensors()[tensor.source].stored.name);
    const TypePattern* found = nullptr;
    for (TypePattern& each : patterns_) {
      bool matches = false;
      for (const std::string_view name : {source, std::string_view(tensor.name)})
        matches |= !name.empty() && (each.pattern.matches(name) || each.pattern.matches(layer_name_of(name).layer));
      if (!matches) continue;
      each.is_used = true;
      if (found == nullptr) found = &each;
    }
    return found;
  }

  // A head that is the embedding has no tensor of its own to exclude.
  bool excludes_tied_head(const TypePattern& pattern) const {
    for (const ConvertedTensor& tensor : converted_.tensors)
      if (tensor.name == "output.weight") return false;
    const bool names_head = pattern.pattern.matches("lm_head") || pattern.pattern.matches("output.weight");
    return !pattern.type && (names_head || pattern.pattern.matches("output"));
  }

  // The type of a tensor that no rule covers.
  GgmlType own_type(const ConvertedTensor& tensor, bool excluded) const {
    const StorageDtype source = model_.tensors()[tensor.source].stored.dtype;
    if (excluded && small_float_of(source)) return GgmlType::bf16;  // exact for all of their values
    if (model_.format().has_ggml_names || excluded) return ggml_type_of(source).value_or(GgmlType::f32);
    return GgmlType::f32;
  }

  Reason reason_of(const TypeChoice& choice, const TypePattern* pattern, GgmlType type,
                   const ConvertedTensor& tensor) const {
    const std::string_view name = info_of(type).name;
    if (pattern != nullptr && !pattern->type)
      return {Rule::excluded, "/exclude", text_of("excluded by {q}", pattern->text)};
    switch (choice.reason) {
      case TypeReason::kept:
        return {Rule::not_quantizable, "", "vectors, norms and other small tensors keep their type"};
      case TypeReason::chosen:
        if (pattern == nullptr) return {Rule::layer_glob, "/output_type", "the config's type for this tensor"};
        return {Rule::layer_glob, pattern->where, text_of("pattern {q} gives {}", pattern->text, name)};
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

  Status lay_out(PlannedTensor& planned, const ConvertedTensor& tensor, const StoredTensor& source, GgmlType type) {
    TensorTask& task = planned.task;
    task.change = change_of(tensor);
    if (task.quantized && task.change.is_transposed)
      return error_at(
          ErrorCode::not_implemented, source.name,
          "is stored transposed and quantized, which cannot be decoded here; start from the unquantized model");
    if (storage_dtype_of(type) == source.dtype && !task.change.any() && !task.quantized) {
      copies_source(planned);
      kept_blocks_ += info_of(source.dtype).block > 1;
    } else if (!is_quantizable(source.dtype, source.shape) || !info_of(type).can_quantize() ||
               (source.dtype == StorageDtype::F4 && task.change.is_transposed)) {
      return error_at(ErrorCode::format_unsupported, source.name,
                      "holds {}, which cannot be read back to make {} of it; exclude the layer, or start from a file "
                      "with more bits",
                      info_of(source.dtype).name, info_of(type).name);
    } else {
      WeightLayout layout = ggml_layout(tensor.shape, source.dtype, type, tensor.name);
      layout.components.front().set_name(tensor.name, planned.weight.layer);
      if (task.change.interleaved_rows != 0) layout.whole_lines = task.change.interleaved_rows;
      task.layout = std::move(layout);
      if (task.quantized || small_float_of(source.dtype) || info_of(source.dtype).block > 1)
        requantized_.add(source.name);
    }
    return importance_.weigh(planned, tensor.name, type, plan_.requests);
  }

  // The types of files that are not quantized are asked for as such.
  bool does_nothing() const override { return plan_.quantized_count == 0 && info_of(info_of(recipe_).type).block > 1; }

  // Nothing is low where every block that the recipe wants is there already.
  bool expects_coverage() const override { return plan_.quantized_count != kept_blocks_; }

  void report() override {
    if (conversion::needs_importance(recipe_) && !importance_.is_given())
      warn("needs-importance", "/recipe",
           text_of("{} is meant for an importance matrix: llama-quantize refuses it without one, because the result is "
                   "of little use",
                   gguf_.recipe),
           "give an imatrix or calibration, or use q2_k or a recipe with more bits");
    for (const TypePattern& pattern : patterns_)
      if (!pattern.is_used && !excludes_tied_head(pattern))
        warn("pattern-unused", pattern.where, text_of("{q} matches no layer of this model", pattern.text));
    if (fallbacks_.count != 0)
      note("type-fallback", fallbacks_.first,
           text_of("{}; {} of {} tensors have another type for that reason, which adds {} bytes", first_fallback_,
                   fallbacks_.count, uint64_t{plan_.tensors.size()}, fallback_bytes_));
    report_requantized();
    if (Status used = importance_.report(gguf_.recipe, diagnostics_); !used) fail(std::move(used.error()));
  }

  // Tensors without a source come first: their bytes are known and go into the prefix.
  Status place_files() override {
    conversion::describe_recipe(recipe_, converted_.metadata);
    importance_.describe(converted_.metadata);
    if (!options_.version.empty()) converted_.metadata.set_text(kVersionKey, options_.version);
    List<gguf::NewTensor> entries;
    List<const ConvertedTensor*> generated;
    for (const ConvertedTensor& tensor : converted_.tensors) {
      if (tensor.source != ConvertedTensor::kGenerated) continue;
      generated.push_back(&tensor);
      entries.push_back({tensor.name, GgmlType::f32, tensor.shape});
    }
    for (const PlannedTensor& planned : plan_.tensors) {
      const Component& stored = planned.outputs().front();
      entries.push_back({stored.name_in(planned.weight.layer), *ggml_type_of(stored.dtype), stored.shape});
    }
    TRY(alignment, gguf::alignment_of(converted_.metadata));
    const std::span<const gguf::NewTensor> all(entries.data(), entries.size());
    List<uint32_t> first = {0};
    if (options_.gguf.shard_bytes != 0 && !entries.empty()) {
      TRY(parts, gguf::split_by_size(all, alignment, options_.gguf.shard_bytes));
      first = std::move(parts);
    }
    const auto count = static_cast<uint32_t>(first.size()), total = static_cast<uint32_t>(entries.size());
    const std::string_view name = without_type(options_.name);
    const std::string stem = text_of("{}-{}", name.empty() ? std::string_view("model") : name, upper(gguf_.recipe));
    for (uint32_t part = 0; part < count; ++part) {
      const uint32_t begin = first[part], end = part + 1 < count ? first[part + 1] : total;
      TRY(header, gguf::write_header(
                      count == 1 ? converted_.metadata : gguf::part_metadata(converted_.metadata, part, count, total),
                      all.subspan(begin, end - begin)));
      PlannedFile file;
      file.name = count == 1 ? text_of("{}.gguf", stem) : part_name({stem, part + 1, count, ".gguf"});
      file.bytes = header.file_bytes;
      file.prefix = std::move(header.bytes);
      for (uint32_t i = begin; i < end; ++i) {
        if (i < generated.size()) {
          file.prefix += generated[i]->data;
          file.prefix.resize(gguf::padded(file.prefix.size(), alignment));
          continue;
        }
        TensorTask& task = plan_.tensors[i - generated.size()].task;
        const uint64_t at = header.offsets[i - begin], after = at + task.layout->components.front().bytes;
        task.components.push_back({part, at});
        task.padding = static_cast<uint32_t>(gguf::padded(after, alignment) - after);
      }
      plan_.files.push_back(std::move(file));
    }
    return {};
  }

  static constexpr const char* kOutput = "output.weight";

  const config::GgufConfig gguf_;
  const conversion::Recipe recipe_ = *conversion::recipe_named(gguf_.recipe);
  List<TypePattern> patterns_;
  GgufImportance importance_;
  conversion::GgufConversion converted_;
  std::optional<UntiedHead> head_;
  CountWithExample fallbacks_;  // tensors whose rows are not a multiple of the block
  std::string first_fallback_;
  int64_t fallback_bytes_ = 0;
  uint64_t kept_blocks_ = 0;  // tensors that have the type in blocks already
};

}  // namespace

Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics) {
  return GgufPlanner(model, config, format, options, diagnostics).run();
}

}  // namespace wasmquant
