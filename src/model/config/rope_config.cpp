// One reader for each scaling of rotations.
#include "model/config/rope_config.h"

#include <cmath>

#include "core/message.h"
#include "numeric/exponential.h"

namespace wasmquant::model {
namespace {

constexpr struct {
  const char* name;
  Rope::Scaling scaling;
} kScalings[] = {{"default", Rope::Scaling::none},  {"dynamic", Rope::Scaling::none},
                 {"linear", Rope::Scaling::linear}, {"llama3", Rope::Scaling::llama3},
                 {"yarn", Rope::Scaling::yarn},     {"longrope", Rope::Scaling::longrope},
                 {"su", Rope::Scaling::longrope},   {"proportional", Rope::Scaling::proportional}};

void read_number(const json::Value& value, double& out) {
  if (value.is_finite() && value.as_number() > 0) out = value.as_number();
}

double logarithm(double x) noexcept { return log2_of(x) * kLn2; }

// 0.1 scale ln(factor) + 1, of YaRN (B. Peng et al. 2023).
double yarn_amplitude(double factor, double scale) noexcept {
  return factor <= 1 ? 1 : 0.1 * scale * logarithm(factor) + 1;
}

Status read_factors(const json::Value& list, const char* where, size_t count, std::vector<float>& out) {
  out.clear();
  for (const json::Value& factor : list.items()) out.push_back(static_cast<float>(factor.as_number()));
  if (out.size() != count)
    return error_at(ErrorCode::config_invalid, where, "has {} factors; the rotated part of a head has {}", out.size(),
                    count);
  for (const float factor : out)
    if (!(factor > 0)) return error_at(ErrorCode::config_invalid, where, "must hold positive factors");
  return {};
}

// Types that change the amplitude.
Status read_amplitude(const json::Value& config, const json::Value& scaling, const char* where, uint32_t head_dim,
                      Rope& out) {
  read_number(config["original_max_position_embeddings"], out.original_positions);
  read_number(scaling["original_max_position_embeddings"], out.original_positions);
  double positions = out.original_positions;
  read_number(config["max_position_embeddings"], positions);
  double ratio = positions / out.original_positions;
  read_number(scaling["factor"], ratio);
  if (out.scaling == Rope::Scaling::yarn) {
    double scale = 0, all = 0;
    out.factor = ratio;
    read_number(scaling["beta_fast"], out.fast_rotations);
    read_number(scaling["beta_slow"], out.slow_rotations);
    read_number(scaling["mscale"], scale);
    read_number(scaling["mscale_all_dim"], all);
    if (scaling["truncate"].is_bool()) out.is_truncated = scaling["truncate"].as_bool();
    out.amplitude = scale > 0 && all > 0 ? yarn_amplitude(out.factor, scale) / yarn_amplitude(out.factor, all)
                                         : yarn_amplitude(out.factor, 1);
  } else if (out.scaling == Rope::Scaling::longrope) {
    const size_t pairs = out.dimensions(head_dim) / 2;
    TRY_VOID(read_factors(scaling["short_factor"], where, pairs, out.short_factors));
    TRY_VOID(read_factors(scaling["long_factor"], where, pairs, out.long_factors));
    out.amplitude = ratio <= 1 ? 1 : std::sqrt(1 + logarithm(ratio) / logarithm(out.original_positions));
  }
  read_number(scaling["attention_factor"], out.amplitude);
  return {};
}

Status read_scaling(const json::Value& config, const json::Value& scaling, const char* where, uint32_t head_dim,
                    Rope& out) {
  const json::Value& named = scaling["rope_type"];
  const std::string& type = named.is_string() ? named.as_string() : scaling["type"].as_string();
  bool is_known = type.empty();
  for (const auto& [name, known] : kScalings)
    if (type == name) {
      is_known = true;
      out.scaling = known;
    }
  if (!is_known)
    return error_at(ErrorCode::not_implemented, where,
                    "the forward pass does not support rotation {q}; it supports default, linear, llama3, yarn, "
                    "longrope, proportional and dynamic",
                    type);
  read_number(scaling["rope_theta"], out.theta);
  read_number(scaling["factor"], out.factor);
  read_number(scaling["low_freq_factor"], out.low_factor);
  read_number(scaling["high_freq_factor"], out.high_factor);
  read_number(scaling["partial_rotary_factor"], out.share);
  if (out.share > 1 || out.dimensions(head_dim) % 2 != 0 || out.dimensions(head_dim) == 0)
    return error_at(ErrorCode::not_implemented, where, "partial rotation of {} of {} dimensions is not supported",
                    out.dimensions(head_dim), head_dim);
  if (type.empty() || out.scaling == Rope::Scaling::none) return {};
  return read_amplitude(config, scaling, where, head_dim, out);
}

void read_growth(const FamilyFacts& facts, QueryGrowth& out) {
  const auto rate = facts.number("growth"), span = facts.number("growth_span");
  if (!rate || !span || !(*span > 0) || !facts.flag("grows")) return;
  out = {*rate, *span, true};
}

}  // namespace

Status read_rope(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  Rope& full = out.rope;
  if (const auto theta = facts.number("theta", "rope_theta")) full.theta = *theta;
  if (const auto share = facts.number("rotary_share", "partial_rotary_factor")) full.share = *share;
  if (const auto dimensions = facts.number("rotary_dimensions")) full.share = *dimensions / out.rope_dim();
  const json::Value& interleaves = config["rope_interleave"];
  full.is_pairs = facts.has(families::forward::kPairs) && (!interleaves.is_bool() || interleaves.as_bool());
  out.sliding_rope.share = full.share;
  out.sliding_rope.is_pairs = full.is_pairs;
  const json::Value& parameters = config["rope_parameters"];
  const json::Value& of_full = parameters["full_attention"];
  const auto read = [&](const json::Value& scaling, const char* where, Rope& rope) {
    return read_scaling(config, scaling, where, out.rope_dim(), rope);
  };
  if (const auto share = facts.number("proportional"); share && parameters.is_null()) {
    full.scaling = Rope::Scaling::proportional;
    full.share = *share;
  }
  TRY_VOID(read(of_full.is_object() ? of_full : parameters, "/rope_parameters", full));
  TRY_VOID(read(config["rope_scaling"], "/rope_scaling", full));
  if (full.scaling != Rope::Scaling::none) {
    out.query_growth.span = full.original_positions;
    for (const json::Value& scaling : {parameters, config["rope_scaling"]})
      read_number(scaling["llama_4_scaling_beta"], out.query_growth.rate);
  }
  read_growth(facts, out.query_growth);
  if (out.latent.rank > 0 && full.scaling != Rope::Scaling::none) {  // scores grow, too
    double all = 0;
    for (const json::Value& scaling : {parameters, config["rope_scaling"]}) read_number(scaling["mscale_all_dim"], all);
    const auto amplitude = static_cast<float>(yarn_amplitude(full.factor, all));
    if (all > 0) out.scales.attention *= amplitude * amplitude;
  }
  if (!facts.has(families::forward::kTwoRopes) && !of_full.is_object()) {
    out.sliding_rope = full;
    return {};
  }
  read_number(config[key_of(config, "rope_local_base_freq|local_rope_theta").c_str()], out.sliding_rope.theta);
  return read(parameters["sliding_attention"], "/rope_parameters/sliding_attention", out.sliding_rope);
}

}  // namespace wasmquant::model
