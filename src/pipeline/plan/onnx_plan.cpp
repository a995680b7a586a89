#include "pipeline/plan/onnx_plan.h"

#include <algorithm>
#include <cstring>

#include "core/message.h"
#include "core/order.h"
#include "onnx_graph/onnx_rewrite.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/group_size_fallback.h"
#include "pipeline/plan/onnx_activations.h"
#include "pipeline/plan/onnx_folding.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {
namespace {

using conversion::OnnxStyle;
using conversion::Segment;

// Shorter ranges of the model without gaps (nodes) are written as literals: a task for each would cost more.
constexpr uint64_t kMaxLiteralBytes = 1 << 20;
constexpr const char* kFolder = "onnx/";  // of transformers.js

class OnnxPlanner {
 public:
  OnnxPlanner(const ModelIndex& model, const Config& config, const PlanOptions& options, List<Diagnostic>& diagnostics)
      : model_(model),
        asked_(asked_algorithms(config)),
        folding_(model.onnx()->model(), model.onnx()->weights(), find_merge(asked_) != nullptr),
        onnx_(folding_.model()),
        config_(config),
        options_(options),
        diagnostics_(diagnostics),
        resolver_(config),
        activations_(onnx_, options) {}

  Result<Plan> run() {
    plan_.format = "onnx";
    TRY_VOID(folding_.read(options_.constants, plan_));
    for (uint32_t i = 0; i < model_.tensors().size(); ++i) add_tensor(i);
    for (Diagnostic& d : resolver_.unused_patterns()) diagnostics_.push_back(std::move(d));
    if (failures_ > 1) first_failure_.message += text_of(" (and {} more tensors, see diagnostics)", failures_ - 1);
    if (failures_ > 0 || (unfit_ > 0 && plan_.quantized_count == 0)) return first_failure_;
    say_what_was_left();
    TRY_VOID(rewrite());
    return std::move(plan_);
  }

 private:
  // ---- which spec and form

  void add_tensor(uint32_t index) {
    const ModelTensor& tensor = model_.tensors()[index];
    const OnnxTensor& listed = model_.onnx_tensors()[index];
    PlannedTensor& planned = plan_.tensors.emplace_back();
    planned.tensor = index;
    planned.weight.layer = tensor.layer;
    planned.weight.layer_type = resolver_.type_of(tensor.layer, tensor.layer_type);
    planned.weight.shape = tensor.stored.shape;
    planned.weight.source = tensor.stored.dtype;
    TensorTask& task = planned.task;
    task.name = tensor.stored.name;
    task.source = {tensor.file, tensor.stored.begin};
    task.source_bytes = tensor.stored.end - tensor.stored.begin;
    task.non_finite = config_.non_finite;
    plan_.bytes_before += task.source_bytes;
    if (Status chosen = choose(planned, listed); !chosen) refuse(planned, std::move(chosen.error()));
    folding_.apply(listed.tensor, planned);
    if (!task.onnx) {
      task.is_copy = true;
      task.layout = WeightLayout();
      if (folding_.is_needless(listed.tensor))
        planned.reason.text = "belongs to a batch norm that the layer before it takes up";
      else
        task.layout.components.push_back(
            {Role::codes, tensor.stored.name, tensor.stored.dtype, tensor.stored.shape, task.source_bytes});
      if (task.factors.any()) set_tiles(task, options_.tile_bytes);
    }
    for (const Component& component : planned.outputs()) planned.bytes_after += component.bytes;
    plan_.bytes_after += planned.bytes_after;
    if (task.is_copy) return;
    ++plan_.quantized_count;
    plan_.quantized_elements += task.layout.rows * task.layout.columns;
    plan_.quantized_bytes += planned.bytes_after;
  }

  // Leaves task.onnx empty where the tensor stays.
  Status choose(PlannedTensor& planned, const OnnxTensor& listed) {
    if (listed.weight == nullptr) {
      planned.reason = {Rule::not_a_weight, "", "no layer uses it as its weight"};
      return {};
    }
    const conversion::OnnxModelWeight& weight = *listed.weight;
    Resolved resolved = resolver_.resolve_weight(weight.layer, weight.layer_type);
    planned.reason = std::move(resolved.reason);
    if (resolved.weight.empty()) return {};
    if (weight.kept != nullptr) {
      planned.reason = {Rule::not_quantizable, "", weight.kept};
      return {};
    }
    if (resolved.weight.size() > 1)
      return error_at(ErrorCode::format_unsupported, planned.task.name, "ONNX holds one spec a weight, not a list");
    const LayerConfig layer = resolver_.layer_config(weight.layer, planned.weight.layer_type);
    const OnnxStyle style = style_of(weight, layer);
    Status chosen = set_layout(planned, weight, resolved.weight.front(), style);
    if (!chosen && style == OnnxStyle::dynamic && is_preset()) {
      if (!set_layout(planned, weight, resolved.weight.front(), OnnxStyle::weight_only)) return chosen;
      planned.reason.text += "; no integer operator takes its inputs, so they stay in float";
    } else if (!chosen) {
      return chosen;
    }
    if (!layer.output_tensors.empty() && are_static(layer.output_tensors) && options_.calibrates &&
        folding_.norm_of(listed.tensor) != nullptr) {
      planned.task.onnx.reset();
      return error_at(ErrorCode::format_unsupported, planned.task.name,
                      "static outputs are captured before the batch norm that this layer takes up; leave "
                      "output_tensors or {} out",
                      kMergeBatchNorm);
    }
    Status added = activations_.add(planned, weight, layer, plan_.requests);
    if (!added) planned.task.onnx.reset();
    return added;
  }

  OnnxStyle style_of(const conversion::OnnxModelWeight& weight, const LayerConfig& layer) {
    const OnnxStyle weights = options_.onnx.qdq ? OnnxStyle::dequantize_linear : OnnxStyle::weight_only;
    const Stages& inputs = layer.input_tensors;
    if ((are_static(inputs) || are_static(layer.output_tensors)) && activations_.takes_static(weight)) {
      static_left_out_ |= !options_.calibrates;
      return options_.calibrates ? OnnxStyle::dequantize_linear : weights;
    }
    inputs_left_out_ |= !layer.output_tensors.empty();
    if (inputs.empty()) return weights;
    const QuantizationSpec& input = inputs.front();
    const bool is_integer = input.dtype == Dtype::int8 || input.dtype == Dtype::uint8;
    if (inputs.size() > 1 || !input.is_dynamic || !is_integer || options_.onnx.qdq) {
      inputs_left_out_ = true;
      return weights;
    }
    inputs_differ_ =
        inputs_differ_ || input.dtype != Dtype::uint8 || input.qscheme != QScheme::per_tensor || input.symmetric;
    return OnnxStyle::dynamic;
  }

  Status set_layout(PlannedTensor& planned, const conversion::OnnxModelWeight& weight, const QuantizationSpec& asked,
                    OnnxStyle style) {
    OnnxTask chosen;
    chosen.spec = asked;
    TRY(form, onnx_form_of(onnx_, weight, asked, style));
    chosen.form = form;
    chosen.swapped = weight.swapped;
    chosen.is_varints = onnx_.tensors[weight.tensor].encoding == onnx::Encoding::varints;
    const OnnxWeight described = describe(onnx_, weight);
    auto layout = onnx_layout(form, described, asked);
    if (!layout && layout.error().code == ErrorCode::group_size_invalid && is_preset()) {
      chosen.spec = fall_back(asked, axis_length(described, asked), described.name, planned.reason, diagnostics_);
      layout = onnx_layout(form, described, chosen.spec);
    }
    if (!layout) return std::move(layout.error());
    TensorTask& task = planned.task;
    task.layout = std::move(*layout);
    task.onnx = chosen;
    set_tiles(task, options_.tile_bytes);
    if (Status fits = check_memory(task); !fits) {
      task.onnx.reset();
      return fits;
    }
    planned.reason.text += text_of("; as {}", name_of(form));
    return {};
  }

  // What a preset, or a config that says so, does not fit is made to fit, or left.
  bool is_preset() const { return config_.indivisible_groups == IndivisibleGroups::fallback; }

  // Of the axis that groups run along, which counts as configs do.
  static uint64_t axis_length(const OnnxWeight& weight, const QuantizationSpec& spec) {
    auto axis =
        static_cast<size_t>(spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(weight.shape.size()) : spec.ch_axis);
    if (weight.swapped && axis < 2) axis = 1 - axis;
    return weight.shape[axis];
  }

  static Status check_memory(const TensorTask& task) {
    const WeightLayout& layout = task.layout;
    TRY_VOID(TensorScales::check(layout, task.name));
    const uint64_t tile = std::min(task.tile_lines, layout.lines()) * layout.line_elements();
    const uint64_t scales = TensorScales::needed(layout) ? layout.granularity.scale_count() : 0;
    if (tile <= kMaxTileElements && scales <= kMaxTileElements) return {};
    return error_at(ErrorCode::memory_budget, task.name,
                    "its smallest tile has {} elements and {} scales kept between passes; the limit is {} each", tile,
                    scales, kMaxTileElements);
  }

  // A preset is for many models: what it cannot be used on stays. A config means what it says.
  void refuse(PlannedTensor& planned, Error error) {
    if (failures_ == 0 && unfit_ == 0) first_failure_ = error;
    if (is_preset() && error.code == ErrorCode::format_unsupported) {
      ++unfit_;
      planned.reason = {Rule::not_quantizable, planned.reason.where,
                        text_of("{}; it stays as it is: {}", planned.reason.text, error.message)};
      return;
    }
    if (failures_++ == 0) first_failure_ = error;
    diagnostics_.push_back(
        {Severity::error, std::string(name_of(error.code)), std::move(error.where), std::move(error.message), ""});
  }

  void say_what_was_left() {
    if (const AskedAlgorithm* merge = find_merge(asked_)) {
      const uint32_t all = conversion::count_norms(model_.onnx()->model());
      const size_t folded = folding_.norms().size();
      if (all != 0 || !merge->is_implied)
        diagnostics_.push_back(
            {folded == 0 ? Severity::warning : Severity::note, folded == 0 ? "not-applied" : "norms-folded",
             merge->where, text_of("{} of {} batch norms are folded into the layers before them", folded, all),
             folded == all
                 ? ""
                 : "norms stay whose values are not constants, or which do not follow a Conv, ConvTranspose or "
                   "Gemm that gives its output to them alone"});
    }
    if (unfit_ > 0)
      diagnostics_.push_back({Severity::note, "kept-in-float", "",
                              text_of("{} weights stay as they are, because their operators cannot hold this spec; the "
                                      "plan says why for each",
                                      unfit_),
                              "give their layers int8 per_channel or per_tensor"});
    if (inputs_left_out_)
      diagnostics_.push_back({Severity::warning, "not-applied", text_of("{}/input_tensors", config_.where),
                              "inputs and outputs of some layers stay in float: ONNX has dynamic inputs of int8 and "
                              "uint8 (none with DequantizeLinear throughout), and static ones of MatMul, Gemm, Conv "
                              "and ConvTranspose",
                              ""});
    if (static_left_out_)
      diagnostics_.push_back({Severity::warning, "not-applied", config_.where,
                              "static inputs and outputs are left out: their scales come from calibration",
                              "give activations, or set is_dynamic to true"});
    if (inputs_differ_)
      diagnostics_.push_back({Severity::note, "inputs-uint8", text_of("{}/input_tensors", config_.where),
                              "ONNX's DynamicQuantizeLinear brings inputs to uint8, one scale and zero point a tensor",
                              ""});
  }

  // ---- the files

  // As transformers.js knows its dtypes: model_q4.onnx, model_q4f16.onnx, model_int8.onnx; q8 is "quantized", integer
  // operators, or whatever is neither of the others.
  std::string file_name() const {
    if (!options_.onnx.file.empty()) return options_.onnx.file;
    const char* suffix = nullptr;
    for (const PlannedTensor& planned : plan_.tensors) {
      if (!planned.task.onnx) continue;
      const WeightLayout& layout = planned.task.layout;
      const bool is_half = layout.source == StorageDtype::F16;
      const bool computes = planned.task.onnx->form == OnnxForm::integer_operator;
      const char* own = computes                            ? "quantized"
                        : layout.bits == 2                  ? is_half ? "q2f16" : "q2"
                        : layout.bits == 4                  ? is_half ? "q4f16" : "q4"
                        : layout.spec.dtype == Dtype::int8  ? "int8"
                        : layout.spec.dtype == Dtype::uint8 ? "uint8"
                                                            : "quantized";
      suffix = suffix == nullptr || std::string_view(suffix) == own ? own : "quantized";
    }
    std::string_view name = options_.name.empty() ? std::string_view("model") : options_.name;
    // There, names say which part of a model it is: model, encoder_model, decoder_model_merged ...
    if (options_.onnx.folder) name = stem_of(model_.files()[0].name);
    const char* folder = options_.onnx.folder ? kFolder : "";
    return suffix == nullptr ? text_of("{}{}.onnx", folder, name) : text_of("{}{}_{}.onnx", folder, name, suffix);
  }

  // Without folder, extension and the dtype of what is quantized now.
  static std::string_view stem_of(std::string_view name) {
    name = name.substr(name.find_last_of("/\\") + 1);
    for (const std::string_view ending : {".onnx", "_fp16", "_fp32"})
      if (name.ends_with(ending) && name.size() > ending.size()) name.remove_suffix(ending.size());
    return name;
  }

  Status rewrite() {
    List<conversion::OnnxChoice> choices;
    for (uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      PlannedTensor& planned = plan_.tensors[i];
      planned.task.components.resize(planned.outputs().size());
      const bool is_float = !planned.task.onnx;
      if (is_float && !planned.task.factors.any()) continue;
      const OnnxForm form = is_float ? OnnxForm::dequantize_linear : planned.task.onnx->form;
      conversion::OnnxChoice& choice = choices.emplace_back(
          conversion::OnnxChoice{model_.onnx_tensors()[i].tensor, form, &planned.task.layout, {}, {}, is_float});
      if (!is_float) activations_.apply(choice);
      chosen_.push_back(i);
    }
    const std::string name = file_name();
    conversion::OnnxOptions rewriting;
    // Models name it from where they are.
    const std::string data_file = text_of("{}_data", name);
    rewriting.data_file = options_.onnx.folder ? data_file.substr(std::strlen(kFolder)) : data_file;
    rewriting.accuracy_level = options_.onnx.accuracy_level;
    rewriting.norms = &folding_.norms();
    if (!options_.version.empty()) rewriting.properties.emplace_back(kVersionKey, options_.version);
    if (options_.onnx.external_data) rewriting.largest_model = 0;
    DiagnosticList remarks;
    auto rewritten = conversion::rewrite_onnx(onnx_, std::span(choices.data(), choices.size()), rewriting, remarks);
    for (Diagnostic& remark : remarks.take()) diagnostics_.push_back(std::move(remark));
    if (!rewritten) return std::move(rewritten.error());
    // Data come first: most bytes are there, and an append-only target takes one file after another.
    if (rewritten->data.bytes > 0) lay_out(data_file, rewritten->data, *rewritten);
    lay_out(name, rewritten->model, *rewritten);
    for (PlannedTensor& planned : plan_.tensors)
      if (planned.task.is_copy && !planned.task.factors.any() && !planned.outputs().empty())
        planned.task.components.front().file = file_of_copy(planned);
    set_order();
    return {};
  }

  // onnx_graph/onnx_rewrite.cpp keeps small tensors in the model.
  uint32_t file_of_copy(const PlannedTensor& planned) const {
    const onnx::Tensor& tensor = onnx_.tensors[model_.onnx_tensors()[planned.tensor].tensor];
    const bool is_inside = planned.task.source_bytes < conversion::kLeastExternalBytes ||
                           (tensor.encoding != onnx::Encoding::bytes && !tensor.is_external());
    return is_inside ? static_cast<uint32_t>(plan_.files.size() - 1) : 0;
  }

  void lay_out(const std::string& name, const conversion::OnnxFile& from, const conversion::OnnxRewrite& rewritten) {
    const auto index = static_cast<uint32_t>(plan_.files.size());
    PlannedFile file;
    file.name = name;
    file.bytes = from.bytes;
    uint64_t at = 0;
    for (const Segment& segment : from.segments) {
      const onnx::Range range{segment.begin, segment.begin + segment.bytes};
      switch (segment.kind) {
        case Segment::Kind::literal:
          file.add_literal(at, std::string_view(rewritten.literals).substr(segment.begin, segment.bytes));
          break;
        case Segment::Kind::zeros:
          file.add_literal(at, std::string(segment.bytes, '\0'));
          break;
        case Segment::Kind::component:
          plan_.tensors[chosen_[segment.source]].task.components[segment.component] = {index, at};
          break;
        case Segment::Kind::model:
          if (segment.bytes <= kMaxLiteralBytes && onnx_.skeleton->is_kept(range))
            file.add_literal(at, onnx_.skeleton->text(range));
          else
            add_copy({0, segment.begin}, segment.bytes, {index, at});
          break;
        case Segment::Kind::external:
          add_copy({segment.source + 1, segment.begin}, segment.bytes, {index, at});
          break;
      }
      at += segment.bytes;
    }
    plan_.files.push_back(std::move(file));
  }

  void add_copy(const Location& from, uint64_t bytes, const Location& to) {
    TensorTask& task = plan_.copies.emplace_back();
    task.is_copy = true;
    task.source = from;
    task.source_bytes = bytes;
    task.components.push_back(to);
    set_tiles(task, options_.tile_bytes);
  }

  void set_order() {
    List<uint32_t> work = std::move(chosen_);
    for (uint32_t c = 0; c < plan_.copies.size(); ++c) work.push_back(static_cast<uint32_t>(plan_.tensors.size()) + c);
    const auto place = [&](uint32_t i) { return plan_.task_of(work[i]).components.front(); };
    for (const uint32_t i : sorted_order(work.size(), [&](uint32_t a, uint32_t b) {
           const Location left = place(a), right = place(b);
           return left.file != right.file ? left.file < right.file : left.offset < right.offset;
         }))
      plan_.order.push_back(work[i]);
  }

  const ModelIndex& model_;
  const List<AskedAlgorithm> asked_;
  OnnxFolding folding_;
  const onnx::Model& onnx_;  // without the norms that are folded
  const Config& config_;
  const PlanOptions& options_;
  List<Diagnostic>& diagnostics_;
  Resolver resolver_;
  OnnxActivations activations_;
  Plan plan_;
  List<uint32_t> chosen_;  // tensors of the plan, by number of the choice
  uint64_t failures_ = 0, unfit_ = 0;
  bool inputs_left_out_ = false, inputs_differ_ = false, static_left_out_ = false;
  Error first_failure_;
};

}  // namespace

Result<Plan> make_onnx_plan(const ModelIndex& model, const Config& config, const PlanOptions& options,
                            List<Diagnostic>& diagnostics) {
  return OnnxPlanner(model, config, options, diagnostics).run();
}

}  // namespace wasmquant
