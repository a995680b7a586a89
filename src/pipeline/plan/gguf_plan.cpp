// Plans a GGUF file: the type of each tensor by recipe, patterns and shape, importance, then the files.
#include <algorithm>

#include "config/dialects/gguf_config.h"
#include "core/message.h"
#include "gguf_conversion/recipe.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/model_index/storage_facts.h"
#include "pipeline/plan/gguf_files.h"
#include "pipeline/plan/gguf_importance.h"
#include "pipeline/plan/gguf_types.h"
#include "pipeline/plan/output_format.h"
#include "pipeline/plan/output_planner.h"
#include "pipeline/plan/tied_head.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant {
namespace {

using conversion::ConvertedTensor;
using conversion::TypeChoice;
using conversion::TypeReason;

Status check_algorithms(const List<RequestedAlgorithm>& requested, const ModelIndex& model) {
  if (is_rotated_source(model))
    return error_at(ErrorCode::format_unsupported, "/input_rotation", llama_cpp::kRotatedSource);
  for (const RequestedAlgorithm& algorithm : requested) {
    const std::string& name = algorithm.value["name"].as_string();
    const auto method = method_named(name);
    if (!method || !goes_with_blocks(*method))
      return error_at(ErrorCode::format_unsupported, algorithm.where,
                      "{q} does not go together with GGUF's types; {} do. To use its result, write it as "
                      "fake-quantized first, then convert that to GGUF",
                      name, names_with_blocks());
  }
  if (const RequestedAlgorithm* online = find_online_rotation(requested))
    return error_at(ErrorCode::format_unsupported, text_of("{}/r4", online->where), llama_cpp::kRotatedDown);
  return {};
}

// Whether a weight is all experts of a layer in MXFP4, of which GGUF has blocks with the same values.
bool is_mxfp4(const StoredWeight& stored) {
  const Assembly& assembly = stored.task.assembly;
  if (assembly.any()) return std::ranges::all_of(assembly.parts, [](const auto& part) { return is_mxfp4(*part); });
  const QuantizationSpec& spec = stored.task.layout->spec;
  return stored.task.layout->shape.size() == 3 && spec.dtype == Dtype::fp4 && spec.scale_format == ScaleFormat::e8m0 &&
         spec.group_size == 32;
}

// Whether it keeps blocks where a type without blocks is asked for, as llama.cpp's converter does.
bool stays_mxfp4(const ModelIndex& model, const ConvertedTensor& tensor, GgmlType asked) {
  if (tensor.source == ConvertedTensor::kGenerated || info_of(asked).block > 1) return false;
  const auto& quantized = model.tensors()[tensor.source].quantized;
  return quantized != nullptr && tensor.shape.back() % 32 == 0 && is_mxfp4(*quantized);
}

// Of tensors that llama.cpp's converter writes in 16 bits.
std::optional<GgmlType> half_type(const ConvertedTensor& tensor, GgmlType asked) noexcept {
  using conversion::HalfPrecision;
  if (tensor.shape.size() < 2 || tensor.half == HalfPrecision::never) return std::nullopt;
  const bool fits = tensor.half == HalfPrecision::for_floats ? info_of(asked).block == 1
                    : tensor.half == HalfPrecision::as_asked ? asked == GgmlType::f16 || asked == GgmlType::bf16
                                                             : asked == GgmlType::f16;
  if (!fits) return std::nullopt;
  return tensor.half == HalfPrecision::as_asked ? asked : GgmlType::f16;
}

// The type of a tensor that no rule covers.
GgmlType own_type(const ModelIndex& model, const ConvertedTensor& tensor, bool excluded) {
  const StorageDtype source = model.tensors()[tensor.source].stored.dtype;
  if (excluded && small_float_of(source)) return GgmlType::bf16;  // exact for all of their values
  if (model.format().has_ggml_names || excluded) return ggml_type_of(source).value_or(GgmlType::f32);
  return GgmlType::f32;
}

class GgufPlanner final : public OutputPlanner {
 public:
  GgufPlanner(const ModelIndex& model, const Config& config, const OutputFormat& format, const PlanOptions& options,
              List<Diagnostic>& diagnostics)
      : OutputPlanner(format.name, model, config, options, diagnostics),
        gguf_(config::gguf_config(config)),
        patterns_(gguf_),
        importance_(options, requested_) {}

 private:
  Status prepare() override {
    TRY_VOID(check_algorithms(requested_, model_));
    TRY_VOID(importance_.read());
    TRY(converted, convert_model(model_, options_.name, options_.gguf.mmproj, diagnostics_));
    converted_ = std::move(converted);
    if (!options_.gguf.mmproj) head_ = untied_head(model_, config_);
    if (!head_) return {};
    ConvertedTensor& tensor = converted_.tensors.emplace_back();
    tensor.source = head_->embedding;
    tensor.name = kOutput;
    tensor.shape = model_.tensors()[head_->embedding].stored.shape;
    return {};
  }

  void add_tensors() override {
    List<const TypePattern*> chosen_by;
    std::vector<conversion::RecipeTensor> tensors;
    for (const ConvertedTensor& tensor : converted_.tensors) {
      const bool is_generated = tensor.source == ConvertedTensor::kGenerated;
      const TypePattern* const pattern = patterns_.find(
          is_generated ? "" : std::string_view(model_.tensors()[tensor.source].stored.name), tensor.name);
      chosen_by.push_back(pattern);
      const bool stays = pattern == nullptr && stays_mxfp4(model_, tensor, asked_);
      tensors.push_back({tensor.name, tensor.shape,
                         stays                ? GgmlType::mxfp4
                         : pattern != nullptr ? pattern->type
                                              : std::optional<GgmlType>()});
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
    auto made = source_of(model_, tensor);
    if (!made) return fail(std::move(made.error()));
    const ModelTensor& source = *made;
    const bool excluded = pattern != nullptr && !pattern->type;
    const std::optional<GgmlType> half = pattern == nullptr ? half_type(tensor, asked_) : std::nullopt;
    const bool kept = !half && (excluded || choice.reason == TypeReason::kept);
    const GgmlType type = half ? *half : kept ? own_type(model_, tensor, excluded) : choice.type;
    PlannedTensor& planned = begin(tensor.source, source);
    planned.task.name = tensor.name;
    planned.weight.shape = tensor.shape;
    planned.reason = reason_of(choice, pattern, type, tensor, gguf_.recipe);
    const bool stays = !kept && pattern == nullptr && stays_mxfp4(model_, tensor, asked_);
    if (stays) planned.reason = Reason{Rule::global, "/recipe", "the model has it as MXFP4, and keeps its values"};
    if (!kept && choice.reason == TypeReason::fallback) fallbacks_.add(tensor, choice, planned.reason->text);
    if (head_ && tensor.name == kOutput) {
      planned.weight.layer = head_->layer;
      planned.name = head_->layer + ".weight";
    }
    finish(planned, lay_out(planned, tensor, source.stored, type));
  }

  Status lay_out(PlannedTensor& planned, const ConvertedTensor& tensor, const StoredTensor& source, GgmlType type) {
    TensorTask& task = planned.task;
    task.change = change_of(tensor);
    take_back_transposition(task);
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
      if (type == GgmlType::mxfp4 && stays_mxfp4(model_, tensor, asked_))
        ++kept_blocks_;
      else if (holds_codes(task) || small_float_of(source.dtype) || info_of(source.dtype).block > 1)
        requantized_.add(source.name);
    }
    return importance_.weigh(planned, tensor.name, type, plan_.requests);
  }

  // A weight that was transposed for its class, and is transposed again for GGUF, is read as it is stored.
  static void take_back_transposition(TensorTask& task) {
    if (!task.quantized || !task.change.is_transposed) return;
    const Assembly& assembly = task.quantized->task.assembly;
    if (assembly.parts.size() != 1 || assembly.rounds != 1 || !assembly.is_transposed) return;
    task.quantized = assembly.parts.front();
    task.change.is_transposed = false;
  }

  // The types of files that are not quantized are asked for as such.
  bool does_nothing() const override { return plan_.quantized_count == 0 && info_of(info_of(recipe_).type).block > 1; }

  // Nothing is low where every block that the recipe wants is there already.
  bool expects_coverage() const override { return plan_.quantized_count != kept_blocks_; }

  void report() override {
    if (conversion::needs_importance(recipe_) && !importance_.is_given())
      warn("needs-importance", "/recipe", text_of(llama_cpp::kWantsImportance, gguf_.recipe),
           "give an imatrix or calibration, or use q2_k or a recipe with more bits");
    bool has_head = false;
    for (const ConvertedTensor& tensor : converted_.tensors) has_head |= tensor.name == kOutput;
    patterns_.report(has_head, diagnostics_);
    fallbacks_.report(plan_.tensors.size(), diagnostics_);
    report_requantized();
    if (Status used = importance_.report(gguf_.recipe, diagnostics_); !used) fail(std::move(used.error()));
  }

  Status place_files() override {
    conversion::describe_recipe(recipe_, converted_.metadata);
    importance_.describe(converted_.metadata);
    if (!options_.version.empty()) converted_.metadata.set_text(kVersionKey, options_.version);
    return place_gguf_files(converted_, gguf_.recipe, options_, plan_);
  }

  static constexpr const char* kOutput = "output.weight";

  const config::GgufConfig gguf_;
  const conversion::Recipe recipe_ = *conversion::recipe_named(gguf_.recipe);
  const GgmlType asked_ = conversion::info_of(recipe_).type;
  TypePatterns patterns_;
  GgufImportance importance_;
  conversion::GgufConversion converted_;
  std::optional<UntiedHead> head_;
  TypeFallbacks fallbacks_;
  uint64_t kept_blocks_ = 0;  // tensors that have the type in blocks already
};

}  // namespace

Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics) {
  return GgufPlanner(model, config, format, options, diagnostics).run();
}

}  // namespace wasmquant
