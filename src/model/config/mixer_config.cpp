// Sizes of each kind of mixer, then which layer has which.
#include "model/config/mixer_config.h"

#include <algorithm>

#include "core/message.h"
#include "families/config_reader.h"
#include "families/layer_kinds.h"
#include "model/config/factor_config.h"

namespace wasmquant::model {
namespace {

constexpr uint32_t kMostChannels = 1 << 24;

Mixer mixer_kind(const FamilyFacts& facts, bool both) noexcept {
  using namespace families::forward;
  return both                     ? Mixer::both
         : facts.has(kDeltaNet)   ? Mixer::delta
         : facts.has(kStateSpace) ? Mixer::state_space
         : facts.has(kSelective)  ? Mixer::selective
                                  : Mixer::convolution;
}

Status read_count(const json::Value& config, const char* names, uint32_t otherwise, uint32_t& out) {
  const std::string key = key_of(config, names);
  const json::Value& value = config[key.c_str()];
  const bool is_given = value.is_integer();
  if (is_given && (value.as_integer() < 1 || value.as_integer() > kMostChannels))
    return error_at(ErrorCode::config_invalid, text_of("/{}", key), "must be a whole number from 1 to {}",
                    kMostChannels);
  out = is_given ? static_cast<uint32_t>(value.as_integer()) : otherwise;
  return {};
}

// Sizes of Mamba 1. A rank that is no number, "auto", is a 16th of the width.
Status read_selective(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  constexpr uint32_t kWidthOfRank = 16;
  Recurrence& r = out.recurrence;
  uint32_t expansion = 0;
  TRY_VOID(read_count(config, "expand|mamba_expand", 2, expansion));
  const double channels = facts.number("channels").value_or(static_cast<double>(expansion) * out.hidden);
  r.heads = channels >= 1 && channels <= kMostChannels ? static_cast<uint32_t>(channels) : 0;
  r.key_heads = r.value_dim = 1;
  TRY_VOID(read_count(config, "state_size|mamba_d_state", 16, r.key_dim));
  TRY_VOID(
      read_count(config, "time_step_rank|mamba_dt_rank", (out.hidden + kWidthOfRank - 1) / kWidthOfRank, r.step_rank));
  r.norm_epsilon = facts.number("mixer_epsilon").value_or(out.norms.epsilon);
  r.norm_columns = std::max(r.heads, 1u);
  return {};
}

Status read_recurrence(const json::Value& config, const FamilyFacts& facts, Mixer kind, Architecture& out) {
  Recurrence& r = out.recurrence;
  const bool is_delta = kind == Mixer::delta;
  uint32_t expansion = 0, width = 0;
  TRY_VOID(read_count(config, "expand|mamba_expand", 2, expansion));
  TRY_VOID(read_count(config, "mamba_d_ssm", expansion * out.hidden, width));
  TRY_VOID(read_count(config, "linear_num_value_heads|mamba_n_heads|mamba_num_heads|num_heads", is_delta ? 32 : 128,
                      r.heads));
  TRY_VOID(read_count(config, "linear_num_key_heads|mamba_n_groups|n_groups", is_delta ? 16 : 1, r.key_heads));
  TRY_VOID(read_count(config, "linear_key_head_dim|mamba_d_state|ssm_state_size|state_size", 128, r.key_dim));
  TRY_VOID(read_count(config, "linear_value_head_dim|mamba_d_head|mamba_head_dim|head_dim",
                      is_delta ? 128 : width / r.heads, r.value_dim));
  const json::Array& limits = config["time_step_limit"].items();
  if (limits.size() == 2 && limits[0].is_finite()) r.least_step = limits[0].as_number();
  if (limits.size() == 2 && limits[1].is_finite()) r.largest_step = limits[1].as_number();
  if (const auto least = facts.number("least_step")) {
    r.least_step = *least;
    r.largest_step = std::numeric_limits<double>::infinity();
  }
  r.norms_first = is_delta || facts.flag("norms_first");
  r.norm_columns = is_delta ? r.value_dim : std::max(r.value_columns() / r.key_heads, 1u);
  return {};
}

/// Whether layer attends, where config.json names no types: those of a list, or one of each period.
bool attends(const json::Value& config, const FamilyFacts& facts, uint32_t layer) {
  for (const json::Value& index : config[key_of(config, "full_attn_idxs|attn_layer_indices").c_str()].items())
    if (index.as_integer() == layer) return true;
  const double period = facts.number("attention_period").value_or(0);
  return period >= 1 && period <= kMostChannels &&
         layer % static_cast<uint32_t>(period) == facts.number("attention_offset").value_or(period - 1);
}

Status read_kinds(const json::Value& config, const FamilyFacts& facts, Mixer kind, Architecture& out) {
  const List<std::string_view> kinds = families::layer_kinds(families::ConfigReader(config), out.layers);
  out.is_split = facts.has(families::forward::kSplitLayers);
  if (kinds.size() != out.layers && (!kinds.empty() || out.is_split))
    return error_at(ErrorCode::config_invalid,
                    text_of("/{}", key_of(config, "layer_types|layers_block_type|hybrid_override_pattern")),
                    "has {} items, num_hidden_layers is {}", kinds.size(), out.layers);
  const bool all_attend = kind == Mixer::convolution && config["full_attn_idxs"].is_null();
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    const std::string_view word = kinds.empty() ? std::string_view() : kinds[layer];
    const bool is_one = kinds.empty() ? all_attend || attends(config, facts, layer)
                                      : word.ends_with("attention") && word != "linear_attention";
    const bool is_attention = kind != Mixer::both && is_one && out.names.has(ModelPart::q);
    const bool feeds = out.is_split && (word == "mlp" || word == "moe");
    out.mixers.push_back(static_cast<uint8_t>(feeds ? Mixer::none : is_attention ? Mixer::attention : kind));
  }
  return {};
}

}  // namespace

Status read_mixers(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  const bool both = out.names.has(ModelPart::state_in);
  if (!out.names.has(ModelPart::mixer_in) && !both) return {};
  const Mixer kind = mixer_kind(facts, both);
  const char* const widths = "conv_L_cache|linear_conv_kernel_dim|conv_kernel|mamba_d_conv";
  const std::string key = key_of(config, widths);
  const json::Value& width = config[key.c_str()];
  const int64_t found = width.is_null()      ? (kind == Mixer::convolution ? 3 : 4)
                        : width.is_integer() ? width.as_integer()
                                             : 0;
  if (found < 1 || found > kMaxConvolution)
    return error_at(ErrorCode::config_invalid, text_of("/{}", key), "must be a whole number from 1 to {}",
                    kMaxConvolution);
  out.convolution_width = static_cast<uint32_t>(found);
  if (kind == Mixer::selective)
    TRY_VOID(read_selective(config, facts, out));
  else if (kind != Mixer::convolution)
    TRY_VOID(read_recurrence(config, facts, kind, out));
  TRY_VOID(read_kinds(config, facts, kind, out));
  if (both) TRY_VOID(read_factors(config, out));
  if (!mixers_hold_together(out))
    return error_at(ErrorCode::config_invalid,
                    text_of("/{}", key_of(config, "linear_num_key_heads|mamba_n_groups|n_groups")),
                    "{} key heads of {} for {} heads of {} are impossible", out.recurrence.key_heads,
                    out.recurrence.key_dim, out.recurrence.heads, out.recurrence.value_dim);
  return {};
}

bool all_recur(const Architecture& a) noexcept {
  return !a.mixers.empty() && std::all_of(a.mixers.begin(), a.mixers.end(), [](uint8_t mixer) {
    return mixer != static_cast<uint8_t>(Mixer::attention) && mixer != static_cast<uint8_t>(Mixer::both);
  });
}

bool mixers_hold_together(const Architecture& a) noexcept {
  const Recurrence& r = a.recurrence;
  if (a.mixers.empty()) return a.convolution_width == 0 && r.heads == 0;
  bool recurs = false;
  for (const uint8_t mixer : a.mixers) {
    const auto kind = static_cast<Mixer>(mixer);
    if (kind > Mixer::none || (kind == Mixer::none && !a.is_split)) return false;
    if (kind == Mixer::none || kind == Mixer::attention) continue;
    if ((kind == Mixer::selective) != (r.step_rank > 0)) return false;
    if (!a.names.has(kind == Mixer::both ? ModelPart::state_in : ModelPart::mixer_in) ||
        !a.names.has(kind == Mixer::both ? ModelPart::state_out : ModelPart::mixer_out))
      return false;
    recurs |= kind != Mixer::convolution;
  }
  const ModelNames& names = a.names;
  const bool has_names = names.has(ModelPart::conv) && (a.factors.empty() || a.factors.size() == kFactors);
  if (a.convolution_width < 1 || a.convolution_width > kMaxConvolution || a.mixers.size() != a.layers || !has_names)
    return false;
  if (!recurs) return r.heads == 0 || r.key_heads > 0;
  const auto fits = [](uint64_t count, uint64_t size) {
    return size >= 1 && size <= kMostChannels && count * size <= kMostChannels;
  };
  return fits(1, r.heads) && fits(1, r.key_heads) && r.heads % r.key_heads == 0 && fits(r.heads, r.value_dim) &&
         fits(r.key_heads, r.key_dim) && uint64_t{r.value_columns()} * r.key_dim <= 16 * uint64_t{kMostChannels} &&
         r.norm_columns >= 1 && r.value_columns() % r.norm_columns == 0 && r.step_rank <= kMostChannels &&
         names.has(ModelPart::decay) &&
         (r.step_rank > 0 ? r.value_dim == 1 && r.key_heads == 1 && names.has(ModelPart::mixer_states) &&
                                names.has(ModelPart::mixer_step) && names.has(ModelPart::skip)
                          : names.has(ModelPart::step_bias));
}

}  // namespace wasmquant::model
