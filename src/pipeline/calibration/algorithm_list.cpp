// The rows of algorithms that a config asks for.
#include "pipeline/calibration/algorithm_list.h"

#include <algorithm>

#include "config/dialects/dialects.h"
#include "config/reading/object_reader.h"
#include "core/message.h"
#include "model/config/model_names.h"

namespace wasmquant {
List<RequestedAlgorithm> requested_algorithms(const Config& config) {
  List<RequestedAlgorithm> out;
  const config::DialectInfo& dialect = config::info_of(config.dialect);
  if (!dialect.has_named_algorithms && dialect.translate == nullptr) return out;
  const auto add = [&](const json::Value& value, std::string where) {
    if (dialect.translate == nullptr) return out.push_back({value, std::move(where)});
    List<config::TranslatedAlgorithm> translated;
    dialect.translate(value, translated);
    for (config::TranslatedAlgorithm& one : translated) out.push_back({std::move(one.value), where, one.is_implied});
  };
  for (const char* key : {"pre_quant_opt_config", "algo_config"}) {
    const json::Value& value = config.source[key];
    const std::string where = text_of("{}/{}", config.where, key);
    if (value.is_object()) add(value, where);
    for (size_t i = 0; i < value.items().size(); ++i) add(value.items()[i], text_of("{}/{}", where, i));
  }
  return out;
}

std::optional<CalibrationMethod> method_named(std::string_view name) noexcept {
  for (const AlgorithmInfo& row : kAlgorithms)
    if (row.is_calibrated && config::index_in(name, row.names) >= 0) return row.method;
  return std::nullopt;
}

std::string names_with_blocks() {
  List<std::string_view> names;
  std::optional<CalibrationMethod> last;
  for (const AlgorithmInfo& row : kAlgorithms) {
    if (!row.is_calibrated || !goes_with_blocks(row.method) || last == row.method) continue;
    names.push_back(config::word_at(row.names, 0));
    last = row.method;
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

GptqOptions gptq_options_of(const json::Value& algorithm, CalibrationMethod method) {
  GptqOptions options;
  const auto flag = [&](const char* key, bool standard) {
    return algorithm[key].is_bool() ? algorithm[key].as_bool() : standard;
  };
  if (const json::Value& size = algorithm["block_size"]; size.is_integer())
    options.block_size = static_cast<uint32_t>(std::clamp<int64_t>(size.as_integer(), 0, 1 << 20));
  if (const json::Value& damping = algorithm["damp_percent"]; damping.is_number())
    options.damp_percent = damping.as_number();
  options.desc_act = flag("desc_act", flag("act_order", method != CalibrationMethod::gpfq));
  options.static_groups = flag("static_groups", options.static_groups);
  options.act_group_aware = flag("act_group_aware", options.act_group_aware);
  return options;
}

const RequestedAlgorithm* find_group_chooser(const List<RequestedAlgorithm>& algorithms,
                                             std::string_view layer) noexcept {
  const bool is_of_block = model::is_block_layer(layer);
  for (const RequestedAlgorithm& algorithm : algorithms) {
    const auto method = method_named(algorithm.value["name"].as_string());
    if (!is_of_block || !method || info_of(*method).kind != AlgorithmKind::rounds) continue;
    if (*method == CalibrationMethod::gpfq) continue;  // its scales are always those of the weight as it was
    const GptqOptions options = gptq_options_of(algorithm.value, *method);
    if (options.desc_act && !options.static_groups && !options.act_group_aware) return &algorithm;
  }
  return nullptr;
}

const RequestedAlgorithm* find_merge(const List<RequestedAlgorithm>& algorithms) noexcept {
  for (const RequestedAlgorithm& algorithm : algorithms)
    if (algorithm.value["name"].as_string() == kMergeBatchNorm) return &algorithm;
  return nullptr;
}

const RequestedAlgorithm* find_online_rotation(const List<RequestedAlgorithm>& algorithms) noexcept {
  for (const RequestedAlgorithm& algorithm : algorithms) {
    const std::string& name = algorithm.value["name"].as_string();
    const json::Value& r4 = algorithm.value["r4"];
    // This name means all rotations unless one is switched off.
    if ((name == "rotation" && r4.as_bool()) || (name == "quarot" && (r4.is_null() || r4.as_bool()))) return &algorithm;
  }
  return nullptr;
}

}  // namespace wasmquant
