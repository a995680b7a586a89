// Plans an ONNX model: the form of each weight, activations, folded norms, then the rewritten graph.
#include "config/config_text.h"
#include "config/presets.h"
#include "core/message.h"
#include "onnx_graph/onnx_rewrite.h"
#include "pipeline/onnx_plan/built_graph.h"
#include "pipeline/onnx_plan/onnx_activations.h"
#include "pipeline/onnx_plan/onnx_files.h"
#include "pipeline/onnx_plan/onnx_folding.h"
#include "pipeline/plan/output_format.h"
#include "pipeline/plan/output_planner.h"
#include "runtimes/onnx_runtime/texts.h"

namespace wasmquant {
namespace {

using conversion::OnnxModelWeight;
using conversion::OnnxReaders;
using conversion::OnnxStyle;

constexpr const char* kEmbedding = "Embedding";
constexpr std::string_view kWidePreset = "int8";
constexpr const char* kInput =
    "it is the default of an input of the graph, which a caller may set; constantInputs (--constant-inputs) makes it a "
    "constant";

class OnnxPlanner final : public OutputPlanner {
 public:
  OnnxPlanner(const ModelIndex& model, const Config& config, const OutputFormat& format, const PlanOptions& options,
              List<Diagnostic>& diagnostics)
      : OutputPlanner(format.name, model, config, options, diagnostics),
        folding_(model.onnx().model(), model.onnx().weights(), find_merge(requested_) != nullptr),
        onnx_(folding_.model()),
        resolver_(config),
        activations_(onnx_, options),
        readers_(model.tensors().size()),
        is_substitute_(model.tensors().size()) {}

 private:
  Status prepare() override { return folding_.read(options_.constants, plan_); }

  // A model that is only dequantized is a result, too, and so is a new graph.
  bool does_nothing() const override {
    return plan_.quantized_count == 0 && model_.format().has_graph && folding_.norms().empty() &&
           std::none_of(plan_.tensors.begin(), plan_.tensors.end(),
                        [](const PlannedTensor& planned) { return planned.is_left; });
  }
  void add_tensors() override {
    const auto count = static_cast<uint32_t>(model_.tensors().size());
    for (uint32_t i = 0; i < count; ++i) {
      PlannedTensor& planned = begin(i, model_.tensors()[i]);
      finish(planned, choose(planned, model_.onnx_tensors()[i]));
    }
    // Where some nodes need a weight as it was, its bytes are copied; a decoded one has none.
    for (uint32_t i = 0; i < count; ++i) {
      const PlannedTensor& codes = plan_.tensors[i];
      if (!codes.task.quantized || !codes.onnx_form || !is_read_otherwise(codes, *model_.onnx_tensors()[i].weight))
        continue;
      const SharedValue<Reason> reason = codes.reason;
      PlannedTensor& values = begin(i, model_.tensors()[i]);
      values.name = values.task.name;
      values.reason = reason;
      finish(values, keep_values(values));
    }
  }

  // ---- which spec and form

  Status choose(PlannedTensor& planned, const OnnxTensor& listed) {
    if (Status quantized = quantize(planned, listed); !quantized) {
      planned.onnx_form.reset();
      planned.task.is_varints = false;
      // Presets skip layers that they do not fit; for configs it is an error.
      Error& error = quantized.error();
      if (!has_fallback() || error.code != ErrorCode::format_unsupported) return quantized;
      leave(planned, error);
      planned.reason = Reason{Rule::not_quantizable, planned.reason->where,
                              text_of("{}; it stays as it is: {}", planned.reason->text, error.message)};
    }
    folding_.apply(listed.tensor, planned);
    if (planned.task.quantized) requantized_.add(planned.task.name);
    if (planned.onnx_form) return {};
    if (planned.task.quantized) return keep_values(planned);
    copies_source(planned);
    if (!folding_.is_needless(listed.tensor)) return {};
    planned.reason.edit(
        [&](Reason& reason) { reason.text = "belongs to a batch norm that is folded into the layer before it"; });
    planned.task.layout = WeightLayout();
    return {};
  }

  // The decoded values of a weight that is not quantized again.
  Status keep_values(PlannedTensor& planned) {
    Stages plain(1);
    plain.front().dtype = Dtype::bfloat16;
    TRY(layout, checkpoint_format_named("fake-quantized")->layout(planned.weight, plain));
    set_dtype(layout.components.front(), planned.weight.source);
    planned.is_left = true;
    planned.add_reason("; its decoded values are written");
    planned.task.layout = std::move(layout);
    return {};
  }

  // Leaves onnx_form empty if the tensor is not quantized.
  Status quantize(PlannedTensor& planned, const OnnxTensor& listed) {
    planned.weight.layer_type = resolver_.type_of(planned.weight.layer, planned.weight.layer_type);
    if (listed.weight == nullptr) {
      planned.reason =
          Reason{Rule::not_a_weight, "", conversion::reason_no_weight(onnx_, onnx_.tensors[listed.tensor])};
      return {};
    }
    const OnnxModelWeight& weight = *listed.weight;
    Resolved resolved = resolve(planned, weight);
    const bool has_none = resolved.weight.empty();
    include_recurrent(weight, resolved);
    include_embedding(weight, resolved);
    is_substitute_[planned.tensor] = has_none;
    planned.reason = std::move(resolved.reason);
    if (resolved.weight.empty()) return {};
    const char* const kept = weight.is_input && !options_.onnx.constant_inputs ? kInput : weight.kept;
    if (kept != nullptr) {
      planned.reason = Reason{Rule::not_quantizable, "", kept};
      return {};
    }
    if (resolved.weight.size() > 1)
      return error_at(ErrorCode::format_unsupported, planned.task.name,
                      "ONNX supports one spec per weight, not a list");
    return quantize_with(planned, weight, resolved.weight.front(), listed.tensor);
  }

  // The spec of the weight's layer, or of the embedding that shares it, and which of them read its codes.
  Resolved resolve(PlannedTensor& planned, const OnnxModelWeight& weight) {
    OnnxReaders& readers = readers_[planned.tensor];
    Resolved resolved = resolver_.resolve_weight(weight.layer, weight.layer_type, weight.operator_type);
    if (!weight.embedding.empty()) {
      Resolved gathered = resolver_.resolve_weight(weight.embedding, kEmbedding, "Gather");
      readers = resolved.weight.empty()              ? OnnxReaders::gathers
                : gathered.weight == resolved.weight ? OnnxReaders::all
                                                     : OnnxReaders::products;
      if (readers == OnnxReaders::gathers) {
        resolved = std::move(gathered);
        planned.weight.layer = weight.embedding;
        planned.weight.layer_type = resolver_.type_of(weight.embedding, kEmbedding);
      }
    }
    return resolved;
  }

  Status quantize_with(PlannedTensor& planned, const OnnxModelWeight& weight, const QuantizationSpec& asked,
                       uint32_t tensor) {
    const LayerConfig layer = resolver_.layer_config(planned.weight.layer, planned.weight.layer_type);
    OnnxStyle style = style_of(weight, layer);
    const bool is_small = style == OnnxStyle::dynamic && has_fallback() && is_small_convolution(weight);
    if (is_small) style = weight_style();
    // One scale per channel or tensor is for all readers, as it is where DequantizeLinear gives the values.
    if (style == weight_style() && !options_.onnx.qdq && asked.qscheme != QScheme::per_group)
      if (OnnxReaders& readers = readers_[planned.tensor]; readers == OnnxReaders::products) readers = OnnxReaders::all;
    Status chosen = set_layout(planned, weight, asked, style);
    if (!chosen && style == OnnxStyle::dynamic && has_fallback()) {
      if (!set_layout(planned, weight, asked, weight_style())) return chosen;
      planned.add_reason("; no integer operator accepts its inputs, so they stay in float");
      is_substitute_[planned.tensor] = true;
      float_inputs_.add(planned.weight.layer);
    } else if (!chosen) {
      if (!promote(planned, weight, asked, chosen.error())) return chosen;
    }
    if (is_small) {
      planned.add_reason("; a grouped or small convolution is slower with integers, so its inputs stay in float");
      is_substitute_[planned.tensor] = true;
      float_inputs_.add(planned.weight.layer);
    }
    if (has_fallback() && readers_[planned.tensor] == OnnxReaders::all && is_read_otherwise(planned, weight))
      TRY_VOID(give_to_all(planned, weight));
    if (planned.onnx_form && *planned.onnx_form == OnnxForm::integer_operator && weight.shape.size() > 2 &&
        !weight.is_batch)
      integer_convolutions_.add(planned.task.name);
    if (!layer.output_tensors.empty() && are_static(layer.output_tensors) && options_.calibrates &&
        folding_.norm_of(tensor) != nullptr)
      return error_at(ErrorCode::format_unsupported, planned.task.name,
                      "static outputs are captured before the batch norm that is folded into this layer; remove "
                      "output_tensors or {}",
                      kMergeBatchNorm);
    return activations_.add(planned, weight, layer, plan_.requests);
  }

  // Whether nodes that do not take the chosen form read the weight as it was: it would be in the file twice.
  bool is_read_otherwise(const PlannedTensor& planned, const OnnxModelWeight& weight) const {
    if (!planned.onnx_form || gives_values(*planned.onnx_form)) return false;
    const onnx::Tensor& tensor = onnx_.tensors[weight.tensor];
    if (tensor.is_output) return true;
    for (const onnx::Consumer& consumer : tensor.consumers)
      if (consumer.use != onnx::Use::view &&
          !takes_form(onnx_, weight, consumer, *planned.onnx_form, readers_[planned.tensor]))
        return true;
    return false;
  }

  // A convolution that ONNX Runtime computes slower than in float where its inputs are rounded: one in groups, whose
  // integers are multiplied group by group, and one with fewer products for an output than 3 x 3 points of three colours.
  bool is_small_convolution(const OnnxModelWeight& weight) const {
    uint64_t products = 1;
    for (size_t d = 1; d < weight.shape.size(); ++d) products *= weight.shape[d];
    for (const onnx::Consumer& consumer : onnx_.tensors[weight.tensor].consumers) {
      if (consumer.use != onnx::Use::conv) continue;
      const onnx::Attribute* const group = onnx_.nodes[consumer.node].find("group");
      if (products < 27 || (group != nullptr && group->integer > 1)) return true;
    }
    return false;
  }

  // int8 per channel, as any node reads it.
  Status give_to_all(PlannedTensor& planned, const OnnxModelWeight& weight) {
    if (!read_wide()) return {};
    TRY_VOID(set_layout(planned, weight, *wide_, weight_style()));
    is_substitute_[planned.tensor] = true;
    planned.add_reason(" and int8 per channel, because other nodes read it, too, and it would be in the file twice");
    return {};
  }

  // Presets of at most 4 bits give int8 per channel to weights whose operators take no such codes.
  bool promote(PlannedTensor& planned, const OnnxModelWeight& weight, const QuantizationSpec& asked,
               const Error& error) {
    const DtypeInfo& dtype = info_of(asked.dtype);
    if (!has_fallback() || error.code != ErrorCode::format_unsupported || !dtype.is_integer || dtype.bits > 4)
      return false;
    if (!read_wide()) return false;
    if (!set_layout(planned, weight, *wide_, weight_style())) return false;
    planned.add_reason(text_of("; int8 per channel instead of {}, because {}", dtype.name, error.message));
    is_substitute_[planned.tensor] = true;
    widened_.add(planned.task.name);
    wanted_ = dtype.name;
    widened_bytes_ += planned.task.source_bytes;
    return true;
  }

  bool read_wide() {
    if (wide_) return true;
    auto spec = config::parse_spec_text(config::preset_named(kWidePreset)->weight);
    if (!spec) return false;
    wide_ = std::move(*spec);
    return true;
  }

  // A config's global spec is not for recurrent layers, but where a preset has integers they are int8 per channel: ONNX Runtime reads
  // them dequantized, and they may be most of a model.
  void include_recurrent(const OnnxModelWeight& weight, Resolved& resolved) {
    const std::string_view type = weight.layer_type;
    if (type != "LSTM" && type != "GRU" && type != "RNN") return;
    if (!is_left_by_preset(resolved)) return;
    resolved.weight = {*wide_};
    resolved.reason = {Rule::layer_type, "", text_of("presets give {} layers of ONNX models int8 per channel", type)};
  }

  // Likewise tables whose rows are looked up, in groups where they divide a row, whose codes are converted once they are looked up: a
  // DequantizeLinear before Gather would convert the whole table in each run.
  void include_embedding(const OnnxModelWeight& weight, Resolved& resolved) {
    if (weight.layer_type != std::string_view(kEmbedding) || options_.onnx.qdq || weight.kept != nullptr) return;
    if (!is_left_by_preset(resolved)) return;
    QuantizationSpec spec = *wide_;
    const char* reason =
        "presets give embeddings of ONNX models int8, with one scale per row where no groups divide it";
    for (int64_t size = 128; size >= 16; size /= 2) {
      if (weight.shape.back() % static_cast<uint64_t>(size) != 0) continue;
      spec.qscheme = QScheme::per_group;
      spec.observer = min_max_observer_for(spec.qscheme);
      spec.ch_axis = -1;
      spec.group_size = size;
      reason = "presets give embeddings of ONNX models int8 in groups";
      break;
    }
    const auto form = onnx_form_of(onnx_, weight, spec, OnnxStyle::weight_only);
    if (!form || *form != OnnxForm::gather_rows || is_read_otherwise(weight)) return;
    resolved.weight = {std::move(spec)};
    resolved.reason = {Rule::layer_type, "", reason};
  }

  // Whether any node reads the table in another way than by its rows.
  bool is_read_otherwise(const OnnxModelWeight& weight) const {
    const onnx::Tensor& tensor = onnx_.tensors[weight.tensor];
    return tensor.is_output ||
           std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](const onnx::Consumer& consumer) {
             return !takes_form(onnx_, weight, consumer, OnnxForm::gather_rows, OnnxReaders::all);
           });
  }

  // Whether a preset of integers has no spec for the weight, and no rule that leaves it.
  bool is_left_by_preset(const Resolved& resolved) {
    const Stages& global = config_.global.weight;
    return resolved.weight.empty() && resolved.reason.rule == Rule::no_config && has_fallback() && global.size() == 1 &&
           info_of(global.front().dtype).is_integer && read_wide();
  }

  void report_widened() {
    if (widened_.count == 0) return;
    uint64_t bytes = 0, count = 0;
    for (const PlannedTensor& planned : plan_.tensors)
      if (planned.onnx_form) {
        ++count;
        bytes += planned.task.source_bytes;
      }
    note(
        "int8-instead", widened_.first,
        text_of("is the first of {} weights (of {}, {} % of the quantized bytes) that become int8 per channel, because "
                "their operators cannot read them in the {} of the preset",
                widened_.count, count,
                static_cast<uint64_t>(100.0 * static_cast<double>(widened_bytes_) / static_cast<double>(bytes) + 0.5),
                wanted_),
        "the plan says why for each; exclude layers to keep them in float");
  }

  OnnxStyle weight_style() const {
    if (options_.onnx.qdq) return OnnxStyle::dequantize_linear;
    return options_.onnx.accuracy_level == 0 ? OnnxStyle::weight_only : OnnxStyle::n_bits;
  }

  OnnxStyle style_of(const OnnxModelWeight& weight, const LayerConfig& layer) {
    const OnnxStyle weights = weight_style();
    const Stages& inputs = layer.input_tensors;
    if ((are_static(inputs) || are_static(layer.output_tensors)) && activations_.takes_static(weight)) {
      if (options_.calibrates) return OnnxStyle::dequantize_linear;
      static_left_out_.add(weight.layer);
      return weights;
    }
    inputs_left_out_ |= !layer.output_tensors.empty();
    if (inputs.empty()) return weights;
    const QuantizationSpec& input = inputs.front();
    const bool is_integer = input.dtype == Dtype::int8 || input.dtype == Dtype::uint8;
    if (inputs.size() > 1 || !input.is_dynamic || !is_integer || options_.onnx.qdq) {
      inputs_left_out_ = true;
      return weights;
    }
    ++dynamic_layers_;
    inputs_differ_ |= input.dtype != Dtype::uint8 || input.qscheme != QScheme::per_tensor || input.symmetric;
    return OnnxStyle::dynamic;
  }

  Status set_layout(PlannedTensor& planned, const OnnxModelWeight& weight, QuantizationSpec asked, OnnxStyle style) {
    // Operators multiply with any scale; AMD Quark's smallest one would cost weights below 1e-5 their precision.
    if (asked.grid.smallest_scale == RoundingGrid().smallest_scale) asked.grid.smallest_scale = 0;
    TRY(form, onnx_form_of(onnx_, weight, asked, style, readers_[planned.tensor]));
    const OnnxWeight described = describe(onnx_, weight, form);
    auto layout = onnx_layout(form, described, asked);
    if (!layout && layout.error().code == ErrorCode::group_size_invalid && has_fallback()) {
      layout = onnx_layout(form, described, fall_back(asked, axis_length(described, asked), planned, asked.group_size));
    }
    if (!layout) return std::move(layout.error());
    planned.task.layout = std::move(*layout);
    planned.task.is_varints = onnx_.tensors[weight.tensor].encoding == onnx::Encoding::varints;
    planned.onnx_form = form;
    planned.add_reason(text_of("; as {}", name_of(form)));
    if (gives_values(form) && readers_[planned.tensor] != OnnxReaders::all)
      planned.add_reason(", for the other nodes that read it, too");
    return {};
  }

  // The length of the axis that groups run along, in the config's orientation.
  static uint64_t axis_length(const OnnxWeight& weight, const QuantizationSpec& spec) {
    const size_t rank = weight.is_batch ? 2 : weight.shape.size();
    auto axis = static_cast<size_t>(spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(rank) : spec.ch_axis);
    if (weight.is_input_major && axis < 2) axis = 1 - axis;
    return weight.shape[weight.is_batch ? axis + weight.shape.size() - 2 : axis];
  }

  void report() override {
    for (Diagnostic& d : resolver_.unused_patterns()) diagnostics_.push_back(std::move(d));
    report_norms();
    report_widened();
    report_requantized();
    if (left_.count != 0)
      note(
          "kept-in-float", left_.first,
          text_of("is the first of {} weights that stay as they are, because their operators do not support this spec; "
                  "the plan says why for each",
                  left_.count),
          "give their layers int8 per_channel or per_tensor");
    const std::string inputs = text_of("{}/input_tensors", config_.where);
    if (inputs_left_out_)
      warn("not-applied", inputs,
           "inputs and outputs of some layers stay in float: ONNX has dynamic inputs of int8 and uint8 (none with "
           "DequantizeLinear throughout), and static ones of MatMul, Gemm, Conv and ConvTranspose");
    if (static_left_out_.count != 0)
      warn("not-applied", static_left_out_.first,
           "static inputs and outputs are left out: their scales come from calibration",
           "give activations, or set is_dynamic to true");
    if (integer_convolutions_.count != 0)
      note("slow-convolutions", integer_convolutions_.first,
           text_of(onnx_runtime::kSlowConvolutions, integer_convolutions_.count),
           "use int8, which is as fast as float, or static inputs and outputs, which are faster");
    if (float_inputs_.count != 0)
      note("inputs-float", float_inputs_.first,
           text_of("only the weight is quantized, here and in {} other layers: ONNX's integer operators are for "
                   "matrix products and convolutions with float32 inputs, and slow for grouped and small convolutions",
                   float_inputs_.count - 1));
    if (inputs_differ_ && dynamic_layers_ > float_inputs_.count)
      note("inputs-uint8", inputs,
           "ONNX's DynamicQuantizeLinear quantizes inputs to uint8, with one scale and zero point per tensor");
  }

  void report_norms() {
    const RequestedAlgorithm* const merge = find_merge(requested_);
    if (merge == nullptr) return;
    const uint32_t all = conversion::count_norms(model_.onnx().model());
    const size_t folded = folding_.norms().size();
    if (all == 0 && merge->is_implied) return;
    diagnostics_.push_back(
        {folded == 0 ? Severity::warning : Severity::note,
         folded == 0 ? DiagnosticCode("no-effect") : DiagnosticCode("norms-folded"), merge->where,
         text_of("{} of {} batch norms are folded into the layers before them", folded, all),
         folded == all
             ? ""
             : "a norm is kept if its values are not constant, or if the Conv, ConvTranspose or Gemm before it "
               "has other consumers"});
  }

  // ---- the files

  Status place_files() override {
    List<conversion::OnnxChoice> choices;
    List<uint32_t> chosen;
    for (uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      PlannedTensor& planned = plan_.tensors[i];
      planned.task.components.resize(planned.outputs().size());
      const bool is_float = !planned.onnx_form;
      if (is_float && !planned.task.factors->any() && !planned.task.quantized) continue;
      const OnnxTensor& listed = model_.onnx_tensors()[planned.tensor];
      const OnnxForm form = is_float ? OnnxForm::dequantize_linear : *planned.onnx_form;
      conversion::OnnxChoice& choice = choices.emplace_back(
          conversion::OnnxChoice{listed.tensor, form, &planned.task.layout.get(), listed.weight, {}, {}, is_float});
      if (!is_float) choice.readers = readers_[i];
      if (!is_float) activations_.apply(choice);
      chosen.push_back(i);
    }
    OnnxFiles files(plan_, model_, onnx_, options_, is_substitute_);
    conversion::OnnxOptions rewriting;
    rewriting.data_file = files.data_in_model();
    rewriting.accuracy_level = options_.onnx.accuracy_level;
    rewriting.norms = &folding_.norms();
    if (!options_.version.empty()) rewriting.properties.emplace_back(kVersionKey, options_.version);
    if (options_.onnx.external_data) rewriting.largest_model = 0;
    DiagnosticList remarks;
    auto rewritten = conversion::rewrite_onnx(onnx_, std::span(choices.data(), choices.size()), rewriting, remarks);
    for (Diagnostic& remark : remarks.take()) diagnostics_.push_back(std::move(remark));
    if (!rewritten) return std::move(rewritten.error());
    count_kept(*rewritten);
    files.place(*rewritten, std::move(chosen));
    return {};
  }

  // Weights that some nodes read as they were take their old bytes, too.
  void count_kept(const conversion::OnnxRewrite& rewritten) {
    for (const uint32_t tensor : rewritten.kept)
      for (PlannedTensor& planned : plan_.tensors)
        if (model_.onnx_tensors()[planned.tensor].tensor == tensor && !planned.task.quantized)
          add_bytes(planned, planned.task.source_bytes);
  }

  OnnxFolding folding_;
  const onnx::Model& onnx_;  // without folded norms
  Resolver resolver_;
  OnnxActivations activations_;
  List<OnnxReaders> readers_;  // of each tensor's codes
  List<bool> is_substitute_;   // whether a tensor's spec is not the config's
  bool inputs_left_out_ = false, inputs_differ_ = false;
  uint64_t dynamic_layers_ = 0;
  CountWithExample static_left_out_;
  std::optional<QuantizationSpec> wide_;  // int8 per channel, once it is needed
  std::string_view wanted_;               // the dtype that the preset gives
  CountWithExample widened_, integer_convolutions_, float_inputs_;
  uint64_t widened_bytes_ = 0;  // in the model
};

}  // namespace

Result<Plan> make_onnx_plan(const ModelIndex& model, const Config& config, const OutputFormat& format,
                            const PlanOptions& options, List<Diagnostic>& diagnostics) {
  if (model.format().has_graph) return OnnxPlanner(model, config, format, options, diagnostics).run();
  TRY(built, built_graph(model, diagnostics));
  auto plan = OnnxPlanner(*built, config, format, options, diagnostics).run();
  if (plan) plan->model = std::move(built);
  return plan;
}

}  // namespace wasmquant
