// A golden case: its parameters, inputs and expected outputs.
#include "golden_case.h"

#include <array>

#include "observers/registry.h"

namespace conformance {

using namespace wasmquant;

namespace {

template <class Enum>
using Words = std::vector<std::pair<std::string_view, Enum>>;

const Words<QScheme> kQSchemes = {
    {"per_tensor", QScheme::per_tensor}, {"per_channel", QScheme::per_channel}, {"per_group", QScheme::per_group}};
const Words<RoundMethod> kRoundMethods = {
    {"half_even", RoundMethod::half_even}, {"round", RoundMethod::round}, {"floor", RoundMethod::floor}};
const Words<ScaleType> kScaleTypes = {{"float", ScaleType::float_},
                                      {"float32", ScaleType::float32},
                                      {"float16", ScaleType::float16},
                                      {"bfloat16", ScaleType::bfloat16},
                                      {"pof2", ScaleType::pof2}};
const Words<ZeroPointType> kZeroPointTypes = {{"int32", ZeroPointType::int32}, {"float32", ZeroPointType::float32}};

template <class Enum>
Status read_word(const GoldenCase& c, std::string_view name, const Words<Enum>& words, Enum& value) {
  const json::Value* param = c.param(name);
  if (!param || param->is_null()) return {};
  for (const auto& [word, meaning] : words) {
    if (param->as_string() != word) continue;
    value = meaning;
    return {};
  }
  return not_yet(std::string(name) + " " + json::write(*param));
}

Status read_flag(const GoldenCase& c, std::string_view name, bool& value) {
  const json::Value* param = c.param(name);
  if (!param || param->is_null()) return {};
  if (!param->is_bool()) return not_yet(std::string(name) + " " + json::write(*param));
  value = param->as_bool();
  return {};
}

Status read_integer(const GoldenCase& c, std::string_view name, int64_t& value) {
  const json::Value* param = c.param(name);
  if (!param || param->is_null()) return {};
  if (!param->is_integer()) return not_yet(std::string(name) + " " + json::write(*param));
  value = param->as_integer();
  return {};
}

}  // namespace

Error not_yet(std::string what) { return {ErrorCode::not_implemented, "", std::move(what)}; }

std::string GoldenCase::text(std::string_view name) const {
  const json::Value* member = json_.find(name);
  return member ? member->as_string() : "";
}

std::vector<std::pair<std::string, std::string>> GoldenCase::roles(std::string_view name) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  const json::Value* object = json_.find(name);
  if (!object) return pairs;
  for (const auto& [role, key] : object->members()) {
    if (!key.is_string()) return {};
    pairs.emplace_back(role, key.as_string());
  }
  return pairs;
}

bool GoldenCase::expects(std::string_view role) const {
  const json::Value* object = json_.find("expected");
  return object && object->find(role);
}

Result<Tensor> GoldenCase::input(std::string_view role) const {
  for (const auto& [name, key] : inputs())
    if (name == role) return tensor(key);
  return not_yet("an op without input " + std::string(role));
}

const json::Value* GoldenCase::param(std::string_view name) const {
  const json::Value* params = json_.find("params");
  return params ? params->find(name) : nullptr;
}

Status GoldenCase::allow_params(std::set<std::string_view> names) const {
  const json::Value* params = json_.find("params");
  if (!params) return {};
  for (const auto& [name, value] : params->members())
    if (!names.contains(name)) return not_yet("parameter " + name + " " + json::write(value));
  return {};
}

Result<std::string> GoldenCase::word(std::string_view name) const {
  const json::Value* value = param(name);
  if (!value || !value->is_string()) return not_yet("no word in parameter " + std::string(name));
  return value->as_string();
}

Result<double> GoldenCase::number(std::string_view name) const {
  const json::Value* value = param(name);
  if (!value || !value->is_number()) return not_yet("no number in parameter " + std::string(name));
  return value->as_number();
}

Result<Dtype> GoldenCase::dtype() const {
  TRY(name, word("dtype"));
  if (const std::optional<Dtype> dtype = dtype_named(name)) return *dtype;
  return not_yet("dtype " + name);
}

Result<QuantizationSpec> GoldenCase::spec() const {
  QuantizationSpec spec;
  TRY(named, dtype());
  spec.dtype = named;
  TRY_VOID(read_word(*this, "qscheme", kQSchemes, spec.qscheme));
  TRY_VOID(read_word(*this, "round_method", kRoundMethods, spec.round_method));
  TRY_VOID(read_word(*this, "scale_type", kScaleTypes, spec.scale_type));
  TRY_VOID(read_word(*this, "zero_point_type", kZeroPointTypes, spec.zero_point_type));
  TRY_VOID(read_flag(*this, "symmetric", spec.symmetric));
  TRY_VOID(read_flag(*this, "is_dynamic", spec.is_dynamic));
  TRY_VOID(read_integer(*this, "ch_axis", spec.ch_axis));
  TRY_VOID(read_integer(*this, "group_size", spec.group_size));
  spec.observer = min_max_observer_for(spec.qscheme);
  return spec;
}

}  // namespace conformance
