#include "pipeline/calibration_steps.h"

#include <algorithm>
#include <optional>

#include "core/message.h"
#include "model/linear_layers.h"

namespace wasmquant {
namespace {

using model::LinearInput;

constexpr LinearInput kInputs[] = {LinearInput::attention, LinearInput::attention_output, LinearInput::feed_forward,
                                   LinearInput::feed_forward_output};

std::optional<CalibrationMethod> method_named(std::string_view name) noexcept {
  if (name == "smooth" || name == "smoothquant") return CalibrationMethod::smooth_quant;
  if (name == "awq") return CalibrationMethod::awq;
  if (name == "gptq") return CalibrationMethod::gptq;
  return std::nullopt;
}

/// One of either key: a list, or a single config.
struct Item {
  const json::Value* value;
  std::string where;
};
List<Item> items_of(const Config& config) {
  List<Item> out;
  if (config.dialect != Dialect::quark) return out;
  for (const char* key : {"pre_quant_opt_config", "algo_config"}) {
    const json::Value& value = config.source[key];
    const std::string where = text_of("{}/{}", config.where, key);
    if (value.is_object()) out.push_back({&value, where});
    for (size_t i = 0; i < value.items().size(); ++i) out.push_back({&value.items()[i], text_of("{}/{}", where, i)});
  }
  return out;
}

double number_or(const json::Value& value, double standard) { return value.is_number() ? value.as_number() : standard; }
bool bool_or(const json::Value& value, bool standard) { return value.is_bool() ? value.as_bool() : standard; }

bool reads(LinearInput input, std::string_view layer) noexcept {
  for (const model::LinearLayer& reader : model::readers_of(input))
    if (layer == reader.name) return true;
  return false;
}

/// scaling_layers: [{"prev_op": "input_layernorm", "layers": ["self_attn.q_proj", ...]}, ...]. Empty: all there are.
Status read_scaling_layers(const json::Value& list, const model::Architecture& architecture, CalibrationStep& step) {
  if (list.items().empty()) return {};
  step.inputs = 0;
  step.names_inputs = true;
  for (size_t i = 0; i < list.items().size(); ++i) {
    const json::Value &entry = list.items()[i], &layers = entry["layers"];
    const std::string where = text_of("{}/scaling_layers/{}", step.where, i);
    const std::string& maker = entry["prev_op"].as_string();
    std::optional<LinearInput> found;
    for (const LinearInput input : kInputs)
      if (maker == maker_of(input, architecture)) found = input;
    if (!found)
      return error_at(ErrorCode::config_invalid, text_of("{}/prev_op", where),
                      "{q} makes no input of linear layers in a block of {}; input_layernorm, self_attn.v_proj, {} and "
                      "mlp.up_proj do",
                      maker, architecture.family, maker_of(LinearInput::feed_forward, architecture));
    for (const json::Value& layer : layers.items())
      if (!reads(*found, layer.as_string()))
        return error_at(ErrorCode::config_invalid, text_of("{}/layers", where),
                        "{q} does not read what {} makes, or is not in a block of {}", layer.as_string(), maker,
                        architecture.family);
    if (layers.items().size() != model::readers_of(*found).size())
      return error_at(ErrorCode::config_invalid, text_of("{}/layers", where),
                      "must name every layer that reads what {} makes, else the others would change", maker);
    step.inputs |= 1u << static_cast<uint32_t>(*found);
  }
  return {};
}

/// inside_layer_modules: ends of names. Empty: all.
Status read_modules(const json::Value& list, CalibrationStep& step) {
  if (list.items().empty()) return {};
  step.layers = 0;
  for (const json::Value& item : list.items()) {
    const std::string& end = item.as_string();
    uint32_t found = 0;
    for (const model::LinearLayer& layer : model::linear_layers())
      if (std::string_view(layer.name).ends_with(end)) found |= 1u << static_cast<uint32_t>(layer.weight);
    if (found == 0 || end.empty())
      return error_at(ErrorCode::config_invalid, text_of("{}/inside_layer_modules", step.where),
                      "{q} is the end of no linear layer's name in a block", end);
    step.layers |= found;
  }
  return {};
}

}  // namespace

const char* maker_of(LinearInput input, const model::Architecture& architecture) noexcept {
  switch (input) {
    case LinearInput::attention:
      return "input_layernorm";
    case LinearInput::attention_output:
      return "self_attn.v_proj";
    case LinearInput::feed_forward:
      return architecture.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    default:
      return "mlp.up_proj";
  }
}

List<std::string> calibrated_algorithms(const Config& config) {
  List<std::string> names;
  for (const Item& item : items_of(config))
    if (const std::string& name = (*item.value)["name"].as_string(); method_named(name)) names.push_back(name);
  return names;
}

Result<List<CalibrationStep>> calibration_steps(const Config& config, const model::Architecture& architecture) {
  List<CalibrationStep> steps;
  for (Item& item : items_of(config)) {
    const json::Value& value = *item.value;
    const auto method = method_named(value["name"].as_string());
    if (!method) continue;
    CalibrationStep step;
    step.method = *method;
    step.where = std::move(item.where);
    if (!steps.empty() && step.method <= steps.back().method)
      return error_at(ErrorCode::config_invalid, step.where,
                      "{q} cannot come here; the order is smoothquant, awq, gptq, each once at most",
                      value["name"].as_string());
    step.smooth_quant.alpha = number_or(value["alpha"], step.smooth_quant.alpha);
    step.smooth_quant.scale_clamp_min = number_or(value["scale_clamp_min"], step.smooth_quant.scale_clamp_min);
    if (value["block_size"].is_integer())
      step.gptq.block_size = static_cast<uint32_t>(std::clamp<int64_t>(value["block_size"].as_integer(), 0, 1 << 20));
    step.gptq.damp_percent = number_or(value["damp_percent"], step.gptq.damp_percent);
    step.gptq.desc_act = bool_or(value["desc_act"], step.gptq.desc_act);
    step.gptq.static_groups = bool_or(value["static_groups"], step.gptq.static_groups);
    step.true_sequential = bool_or(value["true_sequential"], true);
    TRY_VOID(read_scaling_layers(value["scaling_layers"], architecture, step));
    TRY_VOID(read_modules(value["inside_layer_modules"], step));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace wasmquant
