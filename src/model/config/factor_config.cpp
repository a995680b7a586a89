// Factors of a layer's input and of its output are one, since a factor changes places with a matrix.
// Source: transformers, models/falcon_h1/modeling_falcon_h1.py.
#include "model/config/factor_config.h"

#include <string>

#include "core/message.h"

namespace wasmquant::model {
namespace {

constexpr int kWhole = -1;

/// The product of the numbers of one or two keys, of which `item` is one of a list.
struct Factor {
  size_t place;
  const char* key;
  int item;
  const char* second;
};

constexpr size_t place_of(ModelPart part) noexcept { return static_cast<size_t>(part); }

constexpr Factor kKnown[] = {
    {place_of(ModelPart::q), "attention_in_multiplier", kWhole, nullptr},
    {place_of(ModelPart::k), "attention_in_multiplier", kWhole, "key_multiplier"},
    {place_of(ModelPart::v), "attention_in_multiplier", kWhole, nullptr},
    {place_of(ModelPart::o), "attention_out_multiplier", kWhole, nullptr},
    {place_of(ModelPart::gate), "mlp_multipliers", 0, nullptr},
    {place_of(ModelPart::down), "mlp_multipliers", 1, nullptr},
    {place_of(ModelPart::state_in), "ssm_in_multiplier", kWhole, nullptr},
    {place_of(ModelPart::state_out), "ssm_out_multiplier", kWhole, nullptr},
    {kProducts, "ssm_multipliers", 0, nullptr},
    {kProducts + 1, "ssm_multipliers", 1, nullptr},
    {kProducts + 2, "ssm_multipliers", 2, nullptr},
    {kProducts + 3, "ssm_multipliers", 3, nullptr},
    {kProducts + 4, "ssm_multipliers", 4, nullptr},
};

Result<float> number_of(const json::Value& config, const char* key, int item) {
  const json::Value& whole = config[key];
  if (whole.is_null()) return 1.0f;
  const json::Value none;
  const bool is_item = item != kWhole;
  const json::Value& value = !is_item ? whole
                             : static_cast<size_t>(item) < whole.items().size()
                                 ? whole.items()[static_cast<size_t>(item)]
                                 : none;
  if (!value.is_finite())
    return error_at(ErrorCode::config_invalid, is_item ? text_of("/{}/{}", key, item) : text_of("/{}", key),
                    "must be a finite number");
  return static_cast<float>(value.as_number());
}

}  // namespace

Status read_factors(const json::Value& config, Architecture& out) {
  out.factors = List<float>(kFactors);
  for (float& factor : out.factors) factor = 1;
  for (const auto& [place, key, item, second] : kKnown) {
    TRY(factor, number_of(config, key, item));
    out.factors[place] = factor;
    if (second == nullptr) continue;
    TRY(other, number_of(config, second, kWhole));
    out.factors[place] *= other;
  }
  return {};
}

}  // namespace wasmquant::model
