// A quantization map over a tree of modules. The case's shorthand is written as a config of the dialect and read by the
// library's parser; each module is then asked for what it gets.
#include "config/config_text.h"
#include "config/resolve/resolve.h"
#include "dialect_case.h"
#include "golden_case.h"

namespace conformance {

using namespace wasmquant;

namespace {

json::Value member(const json::Value& object, std::string_view name) {
  const json::Value* value = object.find(name);
  return value ? *value : json::Value();
}

json::Value quantization(const json::Value& shorthand) {
  json::Value out{json::Object{}};
  for (const auto& [from, to] : {std::pair{"weight", "weight_quant"}, {"act", "activation_quant"}})
    if (const json::Value* value = shorthand.find(from)) out.set(to, *value);
  return out;
}

json::Value module(std::string_view type, const json::Value& shorthand) {
  json::Value out;
  out.set("quantized_module", "Quant" + std::string(type));
  out.set("module_qconfig", quantization(shorthand));
  return out;
}

json::Value config_of(const json::Value& shorthand) {
  json::Value out, types{json::Object{}}, instances{json::Object{}};
  out.set("dialect", "aihwkit");
  if (const json::Value* standard = shorthand.find("default")) out.set("default_qconfig", quantization(*standard));
  out.set("append_default_conversions", member(shorthand, "append_default_conversions").as_bool());
  const json::Value by_type = member(shorthand, "module"), by_name = member(shorthand, "instance");
  for (const auto& [type, entry] : by_type.members()) types.set(type, module(type, entry));
  for (const auto& [name, entry] : by_name.members())
    instances.set(name, module(entry.items()[0].as_string(), entry.items()[1]));
  out.set("module_qconfig_map", std::move(types));
  out.set("instance_qconfig_map", std::move(instances));
  out.set("input_activation_qconfig_map", member(shorthand, "input"));
  out.set("excluded_modules", member(shorthand, "excluded"));
  return out;
}

json::Value described(const Stages& stages, bool is_weight) {
  if (stages.empty()) return nullptr;
  const QuantizationSpec& spec = stages.front();
  constexpr std::pair<ObserverMethod, const char*> kEstimators[] = {
      {ObserverMethod::last_range, "current_minmax"},         {ObserverMethod::min_max, "allminmax"},
      {ObserverMethod::moving_range, "running_minmax"},       {ObserverMethod::range_mse, "MSE"},
      {ObserverMethod::range_cross_entropy, "cross_entropy"},
  };
  const ObserverMethod method = info_of(spec.observer).method;
  json::Value out;
  out.set("n_bits", static_cast<int64_t>(info_of(spec.dtype).bits));
  out.set("symmetric", spec.symmetric);
  out.set("per_channel", spec.qscheme == QScheme::per_channel);
  for (const auto& [known, name] : kEstimators)
    if (known == method) out.set("range_estimator", name);
  if (!is_weight && method == ObserverMethod::moving_range) out.set("momentum", spec.observer_options.momentum);
  return out;
}

// Objects in any order of their keys.
bool same(const json::Value& a, const json::Value& b) {
  if (!a.is_object() || !b.is_object() || a.members().size() != b.members().size()) return a == b;
  for (const auto& [name, value] : a.members())
    if (b.find(name) == nullptr || !same(value, *b.find(name))) return false;
  return true;
}

bool is_below(std::string_view path, std::string_view module) {
  return path.size() > module.size() && path.starts_with(module) && path[module.size()] == '.';
}

}  // namespace

Result<std::string> aihwkit_resolution(const DialectCase& c) {
  const json::Value *map = c.find("quantization_map"), *tree = c.find("module_tree"), *plan = c.find("expected_plan");
  if (!map || !tree || !plan) return not_yet("a case without map, tree or plan");
  TRY(parsed, config::parse_text(json::write(config_of(*map))));
  const Config& config = parsed.config;
  const Resolver resolver(config);

  json::Array rows;
  std::vector<std::string> settled;  // modules whose children are not visited
  for (const json::Value& item : tree->items()) {
    const std::string &path = item.items()[0].as_string(), &type = item.items()[1].as_string();
    bool visited = !resolver.excludes(path);
    for (const std::string& above : settled) visited &= !is_below(path, above);
    if (!visited) continue;
    json::Value row;
    row.set("path", path);
    row.set("type", type);
    row.set("input", nullptr);
    bool wrapped = false;
    for (const auto& [name, stages] : config.input_quantizers) {
      if (name != path) continue;
      wrapped = true;
      row.set("input", described(stages, false));
    }
    const LayerConfig layer = resolver.layer_config(path, type);
    std::string quantized = type;
    bool is_settled = false;
    for (const auto& [name, entry] : config.layer) {
      if (name != path) continue;
      is_settled = true;
      quantized = member(member(*map, "instance"), path).items()[0].as_string();
    }
    for (const auto& [name, entry] : config.layer_type) is_settled |= name == type;
    if (is_settled) settled.push_back(path);
    const bool replaced = !layer.weight.empty() || !layer.output_tensors.empty();
    row.set("weight", described(layer.weight, true));
    row.set("output", described(layer.output_tensors, false));
    row.set("replaced", replaced);
    if (replaced) row.set("quantized_module", "Quant" + quantized);
    if (wrapped) row.set("wrapped", true);
    if (replaced || wrapped) rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < rows.size() || i < plan->items().size(); ++i) {
    const json::Value mine = i < rows.size() ? rows[i] : json::Value();
    const json::Value wanted = i < plan->items().size() ? plan->items()[i] : json::Value();
    if (!same(mine, wanted))
      return "module " + std::to_string(i) + ": " + json::write(mine) + ", not " + json::write(wanted);
  }
  return std::string();
}

}  // namespace conformance
