#include "model/config/family_facts.h"

#include <cmath>

#include "core/message.h"
#include "families/config_reader.h"
#include "families/word_list.h"

namespace wasmquant::model {

FamilyFacts::Source FamilyFacts::source_of(std::string_view field, std::string_view usual) const noexcept {
  for (std::string_view words = row_.keys; !words.empty();) {
    const std::string_view word = families::next_word(words);
    const size_t equals = word.find('='), tilde = word.find('~');
    if (word.substr(0, equals) != field) continue;
    return {word.substr(equals + 1, tilde == word.npos ? tilde : tilde - equals - 1),
            tilde == word.npos ? std::string_view() : word.substr(tilde + 1)};
  }
  return {usual, {}};
}

const json::Value* FamilyFacts::find(std::string_view names) const noexcept {
  while (!names.empty())
    if (const json::Value* value = config_.find(families::first_word(names))) return value;
  return nullptr;
}

std::optional<double> FamilyFacts::number(std::string_view field, std::string_view usual) const {
  const Source source = source_of(field, usual);
  if (const json::Value* value = find(source.names))
    return value->is_finite() ? std::optional(value->as_number()) : std::nullopt;
  if (source.otherwise.empty()) return std::nullopt;
  const auto read = json::parse(source.otherwise);
  return read ? std::optional(read->as_number()) : std::nullopt;
}

uint32_t FamilyFacts::count(std::string_view field, std::string_view usual, uint32_t otherwise) const {
  constexpr double kMost = 1 << 24;
  const auto found = number(field, usual);
  return found && *found >= 0 && *found <= kMost ? static_cast<uint32_t>(*found) : otherwise;
}

std::string FamilyFacts::text(std::string_view field, std::string_view usual) const {
  const Source source = source_of(field, usual);
  for (std::string_view names = source.names; !names.empty();)
    if (const json::Value* value = config_.find(families::first_word(names)); value != nullptr && value->is_string())
      return value->as_string();
  return std::string(source.otherwise);
}

bool FamilyFacts::flag(std::string_view field) const {
  const Source source = source_of(field, {});
  const json::Value* const value = find(source.names);
  return value != nullptr && value->is_bool() ? value->as_bool() : source.otherwise == "1";
}

Status FamilyFacts::read(Architecture& out) const {
  for (std::string_view names = source_of("refused", {}).names; !names.empty();) {
    const std::string key(families::first_word(names));
    const json::Value& value = config_[key.c_str()];
    if (value.as_bool() || value.as_number() > 0)
      return error_at(ErrorCode::not_implemented, text_of("/{}", key), "the forward pass of {} does not support {}",
                      out.family, value.is_bool() ? "true" : "a number");
  }
  if (source_of("required", {}).names.size() > 0 && !flag("required"))
    return error_at(ErrorCode::not_implemented, text_of("/{}", source_of("required", {}).names),
                    "the forward pass of {} does not support false", out.family);
  out.has_slopes = has(families::forward::kSlopes);
  out.is_transposed = has(families::forward::kTransposed);
  const auto scale = [this](const char* field, float otherwise) {
    const auto found = number(field);
    return found ? static_cast<float>(*found) : otherwise;
  };
  out.gated_attention = has(families::forward::kGatedQueries);
  if (const auto width = number("dense_width")) out.intermediate = static_cast<uint32_t>(*width);
  out.norms.plus_one = has(families::forward::kPlusOneNorms);
  out.norms.subtract_mean = has(families::forward::kLayerNorms);
  out.norms.over_heads = has(families::forward::kWholeNorms);
  out.norms.behind_rope = has(families::forward::kNormsBehindRope);
  out.is_parallel = has(families::forward::kParallel) || flag("parallel");
  out.norms.epsilon = number("epsilon", "rms_norm_eps").value_or(1e-6);
  const float root = has(families::forward::kScaledEmbedding) ? std::sqrt(static_cast<float>(out.hidden)) : 1;
  out.scales.embedding = scale("embedding_scale", root);
  out.scales.residual = scale("residual_scale", 1);
  out.scales.logits = scale("logit_scale", 1) / scale("logit_divisor", 1);
  out.scales.qkv_clip = scale("clip", 0);
  const float scalar = scale("attention_scalar", 0);
  out.scales.attention =
      scale("attention_scale", 1.0f / std::sqrt(scalar > 0 ? scalar : static_cast<float>(out.head_dim)));
  out.scales.attention_cap = scale("attention_cap", 0);
  out.scales.logit_cap = scale("logit_cap", 0);
  return {};
}

std::string key_of(const json::Value& config, std::string_view names) {
  std::string_view rest = names;
  const std::string first(families::first_word(rest));
  for (rest = names; !rest.empty();)
    if (const std::string key(families::first_word(rest)); !config[key.c_str()].is_null()) return key;
  return first;
}

}  // namespace wasmquant::model
