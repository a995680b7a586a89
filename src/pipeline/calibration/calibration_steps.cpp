// One reader for each algorithm's options, and the check that the algorithms are listed in an order that can run.
#include "pipeline/calibration/calibration_steps.h"

#include <algorithm>
#include <optional>

#include "algorithms/rounding/gptaq.h"
#include "algorithms/rounding/qronos.h"
#include "config/reading/object_reader.h"
#include "core/message.h"
#include "model/linear_layers.h"
#include "pipeline/calibration/algorithm_list.h"

namespace wasmquant {
namespace {

using model::LinearInput;

constexpr LinearInput kInputs[] = {LinearInput::attention, LinearInput::attention_output, LinearInput::feed_forward,
                                   LinearInput::feed_forward_output};

// All column-rounding methods share one place in the order.
CalibrationMethod place_of(CalibrationMethod method) noexcept {
  return rounds_columns(method) ? CalibrationMethod::gptq : method;
}

/// "rotation, cle, smoothquant or activationequalization, ...", for messages.
std::string names_in_order() {
  std::string names;
  const AlgorithmInfo* last = nullptr;
  for (const AlgorithmInfo& row : kAlgorithms) {
    if (!row.is_calibrated) continue;
    if (last != nullptr) names += place_of(last->method) == place_of(row.method) ? " or " : ", ";
    names += config::word_at(row.names, 0);
    last = &row;
  }
  return names;
}

double number_or(const json::Value& value, double standard) { return value.is_number() ? value.as_number() : standard; }
bool bool_or(const json::Value& value, bool standard) { return value.is_bool() ? value.as_bool() : standard; }

bool reads(const model::Architecture& a, LinearInput input, std::string_view layer) noexcept {
  for (const model::LinearLayer& consumer : model::consumers_of(a, input))
    if (layer == model::layer_name(a, consumer.weight)) return true;
  return false;
}

/// "input_layernorm, self_attn.v_proj, ...", for messages.
std::string producers_of(const model::Architecture& architecture) {
  std::string names;
  for (const LinearInput input : kInputs) {
    const std::string& name = producer_of(input, architecture);
    if (!name.empty() && !names.empty()) names += ", ";
    names += name;
  }
  return names;
}

/// scaling_layers: [{"prev_op": "input_layernorm", "layers": ["self_attn.q_proj", ...]}, ...]. Empty: all.
Status read_scaling_layers(const json::Value& list, const model::Architecture& architecture, CalibrationStep& step) {
  if (list.items().empty()) return {};
  step.inputs = 0;
  step.names_inputs = true;
  for (size_t i = 0; i < list.items().size(); ++i) {
    const json::Value &entry = list.items()[i], &layers = entry["layers"];
    const std::string where = text_of("{}/scaling_layers/{}", step.where, i);
    const std::string& producer = entry["prev_op"].as_string();
    std::optional<LinearInput> found;
    for (const LinearInput input : kInputs)
      if (!producer.empty() && producer == producer_of(input, architecture)) found = input;
    if (!found)
      return error_at(
          ErrorCode::config_invalid, text_of("{}/prev_op", where),
          "{q} does not produce the input of a linear layer in a block of {} so that it can be scaled; {} do", producer,
          architecture.family, producers_of(architecture));
    for (const json::Value& layer : layers.items())
      if (!reads(architecture, *found, layer.as_string()))
        return error_at(ErrorCode::config_invalid, text_of("{}/layers", where),
                        "{q} does not read the output of {}, or is not in a block of {}", layer.as_string(), producer,
                        architecture.family);
    if (layers.items().size() != model::consumers_of(architecture, *found).size())
      return error_at(ErrorCode::config_invalid, text_of("{}/layers", where),
                      "must name every layer that reads the output of {}, because the others would change, too",
                      producer);
    step.inputs |= 1u << static_cast<uint32_t>(*found);
  }
  return {};
}

/// inside_layer_modules: name suffixes. Empty: all.
Status read_modules(const json::Value& list, const model::Architecture& architecture, CalibrationStep& step) {
  if (list.items().empty()) return {};
  step.layers = 0;
  List<model::Architecture> parts;
  const size_t decoded = architecture.decoder.first > 0 ? architecture.layers : 1;
  for (uint32_t layer = 0; layer < std::max({architecture.has_experts.size(), architecture.mixers.size(), decoded});
       ++layer)
    parts.push_back(model::block_of(architecture, layer));
  if (architecture.routing.experts > 0) parts.push_back(model::expert_of(architecture, 0));
  for (const json::Value& item : list.items()) {
    const std::string& end = item.as_string();
    uint32_t found = 0;
    for (const model::Architecture& part : parts)
      for (const model::LinearLayer& layer : model::linear_layers())
        if (model::layer_name(part, layer.weight).ends_with(end)) found |= 1u << static_cast<uint32_t>(layer.weight);
    if (found == 0 || end.empty())
      return error_at(ErrorCode::config_invalid, text_of("{}/inside_layer_modules", step.where),
                      "no linear layer in a block has a name ending in {q}", end);
    step.layers |= found;
  }
  return {};
}

/// Supports rotations that a model file can store, and R4, which config.json announces to the runtime. Quark's
/// scaling_layers list the layers on the residual stream, which are known here for all families, so they are ignored.
Status read_rotation(const json::Value& value, const model::Architecture& architecture, CalibrationStep& step) {
  const bool is_all = value["name"].as_string() == "quarot";
  for (const char* key : {"r3", "online_r1_rotation", "trainable"}) {
    if (!bool_or(value[key], is_all && key[0] == 'r')) continue;
    return error_at(ErrorCode::not_implemented, text_of("{}/{}", step.where, key),
                    key[0] == 't' ? "trained rotations are not part of this version; set it to false"
                                  : "rotates values at run time, which most runtimes cannot; set it to false");
  }
  RotationOptions options;
  options.r1 = bool_or(value["r1"], true);
  options.r2 = bool_or(value["r2"], is_all);
  options.r4 = bool_or(value["r4"], is_all);
  const bool is_random = bool_or(value["random"], false);  // the older name of both
  options.random_r1 = bool_or(value["random_r1"], is_random);
  options.random_r2 = bool_or(value["random_r2"], is_random);
  if (value["seed"].is_integer()) options.seed = static_cast<uint64_t>(value["seed"].as_integer());
  if (const json::Value& size = value["rotation_size"]; size.is_integer()) {
    if (size.as_integer() < 1)
      return error_at(ErrorCode::config_invalid, text_of("{}/rotation_size", step.where), "must be positive");
    options.rotation_size = static_cast<uint64_t>(size.as_integer());
  }
  if (architecture.routing.experts > 0 && (options.r1 || options.r4))
    return error_at(ErrorCode::not_implemented, text_of("{}/{}", step.where, options.r1 ? "r1" : "r4"),
                    "is not implemented for mixtures of experts such as {q}; set it to false", architecture.family);
  if (architecture.decoder.first > 0)
    return error_at(ErrorCode::not_implemented, step.where,
                    "is not implemented for {q}, which has a decoder behind an encoder", architecture.family);
  TRY(rotation, ModelRotation::create(architecture, options, step.where));
  step.rotation = std::move(rotation);
  return {};
}

void read_equalization(const json::Value& value, CalibrationStep& step) {
  if (const json::Value& iterations = value["equalize_iterations"]; iterations.is_integer())
    step.equalization.iterations = static_cast<uint32_t>(std::clamp<int64_t>(iterations.as_integer(), 0, 1 << 20));
  step.equalization.merge_bias = bool_or(value["equalize_merge_bias"], step.equalization.merge_bias);
}

void read_search(const json::Value& value, const Config& config, CalibrationStep& step) {
  const std::string& loss = value["compute_scale_loss"].as_string();
  step.scale_loss = loss == "MAE" ? ScaleLoss::mae : loss == "RMSE" ? ScaleLoss::rmse : ScaleLoss::mse;
  const Stages& inputs = config.global.input_tensors;
  if (!inputs.empty() && !info_of(inputs.front().dtype).is_plain_cast()) step.input_spec = inputs.front();
}

bool any_input_is_quantized(const Config& config) {
  const auto has_inputs = [](const LayerConfig& layer) {
    return !layer.input_tensors.empty() && !info_of(layer.input_tensors.front().dtype).is_plain_cast();
  };
  bool found = has_inputs(config.global) || !config.input_quantizers.empty();
  for (const auto* list : {&config.layer_type, &config.layer})
    for (const auto& [name, layer] : *list) found |= has_inputs(layer);
  return found;
}

/// Each method has its own meaning of alpha.
Status read_strength(const json::Value& value, CalibrationStep& step) {
  step.alpha = step.method == CalibrationMethod::gptaq ? kGptaqAlpha : kQronosAlpha;
  if (value["name"].as_string() == "activationequalization") {
    if (bool_or(value["is_layerwise"], true))
      return error_at(
          ErrorCode::not_implemented, text_of("{}/is_layerwise", step.where),
          "true multiplies a layer's inputs while the model runs, and model files cannot store that; set it "
          "to false, so that it is folded into the layer before");
    step.smooth_quant = {0.5, 0, 0, 1e-9};
  }
  step.alpha = number_or(value["alpha"], step.alpha);
  step.smooth_quant.alpha = number_or(value["alpha"], step.smooth_quant.alpha);
  step.smooth_quant.scale_clamp_min = number_or(value["scale_clamp_min"], step.smooth_quant.scale_clamp_min);
  return {};
}

bool has_biases(const model::Architecture& architecture) noexcept {
  for (const model::BlockWeight& weight : model::block_weights(architecture))
    for (const model::LinearLayer& layer : model::linear_layers())
      if (weight.slot == layer.bias) return true;
  return false;
}

}  // namespace

const std::string& producer_of(LinearInput input, const model::Architecture& a) noexcept {
  using model::ModelPart;
  static const std::string none;
  const model::ModelNames& names = a.names;
  const auto norm = [&](ModelPart part) -> const std::string& {
    return names.has_weight(part) ? names.of(part) : none;
  };
  switch (input) {
    case LinearInput::attention:
      // A norm whose output the feed-forward reads as well cannot be scaled for one of them.
      // So cannot one that other layers read.
      if (names.has(ModelPart::low_rank_in)) return none;
      return a.is_parallel && !names.has(ModelPart::feed_forward_norm) ? none : norm(ModelPart::input_norm);
    case LinearInput::latent_query:
    case LinearInput::latent_key:
    case LinearInput::encoded:
    case LinearInput::state_output:
    case LinearInput::layer_input:
    case LinearInput::layer_output:
      return none;
    case LinearInput::attention_output:
      return a.scales.qkv_clip > 0 || a.latent.rank > 0 || model::mixer_of(a, 0) != model::Mixer::attention ||
                     names.has(ModelPart::heads_qkv) || names.has(ModelPart::v_norm) || names.has(ModelPart::encoded_v)
                 ? none
                 : names.of(names.has(ModelPart::v) ? ModelPart::v : ModelPart::qkv);
    case LinearInput::feed_forward:
      // That of experts and their router cannot be scaled for one expert after another.
      return names.has(ModelPart::router) ? none : norm(ModelPart::feed_forward_norm);
    default:
      // Behind an activation without a gate, or with limits, channels do not scale.
      if (a.routing.gate_limit > 0) return none;
      return names.has(ModelPart::gate) ? names.of(ModelPart::up) : names.of(ModelPart::gate_up);
  }
}

List<CalibratedAlgorithm> calibrated_algorithms(const Config& config) {
  List<CalibratedAlgorithm> out;
  for (const RequestedAlgorithm& item : requested_algorithms(config)) {
    const std::string& name = item.value["name"].as_string();
    const auto method = method_named(name);
    if (!method) continue;
    CalibratedAlgorithm& row = out.emplace_back();
    row.name = name;
    row.needs_inputs = info_of(*method).sees != AlgorithmSees::nothing;
    row.changes_inputs = precedes_rounding(*method);
    row.rotates_stream = *method == CalibrationMethod::rotation && bool_or(item.value["r1"], true);
    row.is_implied = item.is_implied;
    row.needs_reference = needs_reference(*method);
    row.holds_out = item.value["choose"].as_string() == "best";
  }
  return out;
}

Result<List<CalibrationStep>> calibration_steps(const Config& config, const model::Architecture& architecture) {
  List<CalibrationStep> steps;
  for (RequestedAlgorithm& item : requested_algorithms(config)) {
    const json::Value& value = item.value;
    const auto method = method_named(value["name"].as_string());
    if (!method) continue;
    CalibrationStep step;
    step.method = *method;
    step.name = value["name"].as_string();
    step.where = std::move(item.where);
    step.is_preprocessing = step.where.find("/pre_quant_opt_config") != step.where.npos;
    if (!steps.empty() && place_of(step.method) <= place_of(steps.back().method))
      return error_at(ErrorCode::config_invalid, step.where, "{q} is out of order; the order is {}, each at most once",
                      value["name"].as_string(), names_in_order());
    if (architecture.routing.experts > 0 && needs_reference(step.method))
      return error_at(
          ErrorCode::not_implemented, step.where,
          "{q} compares with the unquantized model, which is not implemented for mixtures of experts such as "
          "{q}; use gptq",
          value["name"].as_string(), architecture.family);
    if (step.method == CalibrationMethod::rotation) TRY_VOID(read_rotation(value, architecture, step));
    if (step.method == CalibrationMethod::bias_correction && !has_biases(architecture))
      return error_at(ErrorCode::config_invalid, step.where,
                      "no linear layer in the blocks of this model has a bias, and runtimes read none for its family; "
                      "remove biascorrection");
    read_equalization(value, step);
    if (step.method == CalibrationMethod::auto_smooth_quant) read_search(value, config, step);
    TRY_VOID(read_strength(value, step));
    step.gptq = gptq_options_of(value, *method);
    step.true_sequential = bool_or(value["true_sequential"], true);
    step.nearest_if_worse = value["on_worse"].as_string() == "nearest";
    step.chooses_best = value["choose"].as_string() == "best";
    step.refine = static_cast<uint32_t>(std::clamp<int64_t>(value["refine"].as_integer(), 0, UINT8_MAX));
    step.duo_scaling = bool_or(value["duo_scaling"], false);
    step.quantizes_inputs = any_input_is_quantized(config);
    TRY_VOID(read_scaling_layers(value["scaling_layers"], architecture, step));
    TRY_VOID(read_modules(value["inside_layer_modules"], architecture, step));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace wasmquant
