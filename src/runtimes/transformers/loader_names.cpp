// Renames of each family, prefixes of base models, and heads that the loader ties.
#include "runtimes/transformers/loader_names.h"

#include <algorithm>
#include <span>

#include "families/module_path.h"
#include "families/word_list.h"
#include "runtimes/transformers/default_exclusions.h"

namespace wasmquant::transformers {

using namespace families;

namespace {

struct Renamed {
  std::string_view types, rules;
};
constexpr Renamed kRenamed[] = {
#define WASMQUANT_RENAMED(types, rules) {types, rules},
#include "runtimes/transformers/loader_names.def"
};

// Where a class with a head keeps its base model. Names in files may or may not have this prefix, and the loader adds
// or removes it. `first`: first components of names without it.
struct BasePrefix {
  std::string_view types, prefix, first;
};
constexpr BasePrefix kBasePrefixes[] = {
    {"bloom gpt2 falcon gptj gpt_neo gpt_bigcode codegen openai-gpt", "transformer",
     "h wte wpe ln_f word_embeddings word_embeddings_layernorm"},
    {"mpt dbrx", "transformer", "blocks wte norm_f"},
    {"bert", "bert", "embeddings encoder pooler"},
    {"roberta xlm-roberta camembert", "roberta", "embeddings encoder pooler"},
    {"deberta deberta-v2", "deberta", "embeddings encoder"},
    {"electra", "electra", "embeddings embeddings_project encoder"},
    {"mpnet", "mpnet", "embeddings encoder pooler"},
    {"albert", "albert", "embeddings encoder pooler"},
    {"distilbert", "distilbert", "embeddings transformer"},
    {"opt", "model", "decoder"},
    {"gpt_neox", "gpt_neox", "embed_in layers final_layer_norm"},
    {"mamba mamba2", "backbone", "embeddings layers norm_f"},
    {"", "model", "embed_tokens layers norm"},  // all others
};

// Heads by the classes that tie them: a substring of the class's name.
struct Head {
  std::string_view name, classes;
};
constexpr Head kHeads[] = {
    {"lm_head",
     "ForCausalLM LMHead ForConditionalGeneration MTModel ForImageTextToText ForVisionText2Text ForCausalImageModeling "
     "DoubleHeads FunnelForMaskedLM EuroBertForMaskedLM ModernVBertForMaskedLM NeoMMEForMaskedLM SeamlessM4T "
     "DiffusionGemma"},
    {"cls.predictions.decoder",
     "ForMaskedLM ForPreTraining LMHead BertForCausalLM BigBirdForCausalLM ErnieForCausalLM RoFormerForCausalLM "
     "VisualBert"},
    {"lm_head.decoder",
     "ForMaskedLM RobertaForCausalLM CamembertForCausalLM GenerationDecoder Data2VecTextForCausalLM "
     "PreLayerNormForCausalLM XLMRobertaXLForCausalLM XmodForCausalLM"},
    {"language_model.lm_head", "Blip2For InstructBlip"},
    {"model.lm_head", "ShieldGemma2"},
    {"decoder.lm_head", "EncoderDecoderModel"},
    {"decoder.cls.predictions.decoder", "EncoderDecoderModel"},
    {"decoder.lm_head.decoder", "EncoderDecoderModel"},
    {"lm_head.out_proj", "T5Gemma"},
    {"predictions.decoder", "Albert"},
    {"decoder", "ModernBert"},
    {"generator_lm_head", "Electra ConvBert"},
    {"vocab_projector", "DistilBert"},
    {"proj_out", "Whisper Moonshine CohereAsr CanaryFor"},
    {"ctc_head", "GraniteSpeech5ForCTC"},
    {"head.decoder", "UltrabertFor"},
    {"unembedding_projection", "NeoMMEFor"},
    {"embed_out", "GPTNeoX"},
    {"output_projection", "BioGpt TrOCR"},
    {"decoder.output_projection", "TrOCR FSMT EncoderDecoderModel"},
    {"text_decoder.cls.predictions.decoder", "Blip"},
    {"mlm_score.decoder", "BridgeTower Vilt"},
    {"pred_layer.proj", "WithLMHead"},
    {"entity_predictions.decoder", "Luke"},
    {"output", "GitForCausalLM"},
    {"text_model.lm_head", "Kosmos2"},
    {"head", "Rwkv"},
    {"lm_loss", "XLNet"},
    {"text_decoder_postnet.lm_head", "SpeechT5"},
};

// Old parameter names of norms and weight norms in any family.
constexpr std::string_view kOldNames[] = {"LayerNorm.gamma", "LayerNorm.beta", ".weight_g", ".weight_v"};

// Families whose _init_weights reads the weight of linear layers; `part`: only layers with such a component.
struct PlainWeight {
  std::string_view types, part;
};
constexpr PlainWeight kPlainWeights[] = {
#define WASMQUANT_PLAIN_WEIGHT(types, part) {types, part},
#define WASMQUANT_FORMER_PLAIN_WEIGHT(types)
#include "runtimes/transformers/plain_weights.def"
};
constexpr PlainWeight kFormerPlainWeights[] = {
#define WASMQUANT_PLAIN_WEIGHT(types, part)
#define WASMQUANT_FORMER_PLAIN_WEIGHT(types) {types, ""},
#include "runtimes/transformers/plain_weights.def"
};

bool has_layer(std::span<const PlainWeight> rows, const ModelFamily& family, std::string_view layer) {
  // Each part of a model initializes its own layers. Which layers are those of a nested type is known of towers; a
  // model without a language model has no others.
  const bool may_be_nested = !family.generates() || tower_end(layer) != std::string_view::npos;
  for (const PlainWeight& row : rows) {
    if (!row.part.empty() && !has_component(layer, row.part)) continue;
    if (is_word(row.types, family.model_type)) return true;
    if (may_be_nested && any_word(row.types, [&](std::string_view type) { return family.has(type); })) return true;
  }
  return false;
}

// Where a rule matches a name.
struct Fit {
  size_t at = std::string::npos, size = 0;
  std::string number;  // value of the rule's #
};

Fit fit_of(std::string_view name, std::string_view from) {
  const size_t hash = from.find('#');
  if (hash == std::string_view::npos) return {name.find(from), from.size(), {}};
  const std::string_view before = from.substr(0, hash), behind = from.substr(hash + 1);
  for (size_t at = name.find(before); at != std::string_view::npos; at = name.find(before, at + 1)) {
    const size_t first = at + before.size();
    const size_t end = std::min(name.find_first_not_of("0123456789", first), name.size());
    if (end > first && name.substr(end).starts_with(behind))
      return {at, end - at + behind.size(), std::string(name.substr(first, end - first))};
  }
  return {};
}

}  // namespace

std::string renamed(std::string_view rules, std::string_view layer, bool with_anchored) {
  // Rules are of names of tensors, of which something follows the layer's.
  std::string name = std::string(layer) + ".";
  bool is_anchored = !with_anchored;
  while (!rules.empty()) {
    const std::string_view rule = next_word(rules);
    const size_t equals = rule.find('=');
    std::string_view from = rule.substr(0, equals);
    std::string to(rule.substr(equals + 1));
    const bool is_anchor = from.starts_with('^');
    if (is_anchor) from.remove_prefix(1);
    const Fit fit = fit_of(name, from);
    if (fit.at == std::string::npos || (is_anchor && (is_anchored || fit.at != 0))) continue;
    is_anchored |= is_anchor;
    if (const size_t hash = to.find('#'); hash != std::string::npos) to.replace(hash, 1, fit.number);
    name.replace(fit.at, fit.size, to);
  }
  name.pop_back();
  return name;
}

namespace {

bool has_head(const ModelFamily& family) {
  for (const std::string_view part : {"For", "LMHead", "MTModel"})
    if (family.architecture.find(part) != std::string::npos) return true;
  return false;
}

std::string with_base_prefix(const ModelFamily& family, std::string_view layer) {
  if (family.architecture.empty()) return std::string(layer);
  for (const BasePrefix& row : kBasePrefixes) {
    if (!row.types.empty() && !is_word(row.types, family.model_type)) continue;
    std::string_view rest = layer;
    const std::string_view first = next_component(rest);
    if (has_head(family))
      return is_word(row.first, first) ? std::string(row.prefix) + "." + std::string(layer) : std::string(layer);
    return std::string(first == row.prefix && !rest.empty() ? rest : layer);
  }
  return std::string(layer);
}

const Renamed* renames_of(std::string_view type) {
  const auto is_of = [&](const Renamed& row) { return is_word(row.types, type); };
  const auto* const row = std::find_if(std::begin(kRenamed), std::end(kRenamed), is_of);
  return row == std::end(kRenamed) ? nullptr : row;
}

// Whether a layer is of the part of a model that reads or writes text, and whether a type is.
bool is_of_text(const ModelFamily& family, std::string_view layer) {
  if (!family.text_model_type.empty() && tower_end(layer) == std::string_view::npos) return true;
  for (const std::string_view part : {"text_model", "text_encoder", "language_model", "decoder"})
    if (has_component(layer, part)) return true;
  return false;
}
bool is_text_type(const ModelFamily& family, std::string_view type) {
  return type == family.text_model_type || type.find("text") != std::string_view::npos;
}

}  // namespace

std::string loader_name(const ModelFamily& family, std::string_view layer) {
  const Renamed* const own = renames_of(family.model_type);
  std::string name = own != nullptr ? renamed(own->rules, layer, true) : with_base_prefix(family, layer);
  // The loader renames the layers of a part by the rules of its type, too: those that match anywhere in a name.
  for (const std::string& type : family.model_types) {
    const Renamed* const row = renames_of(type);
    if (row == nullptr || row == own || is_text_type(family, type) != is_of_text(family, layer)) continue;
    name = renamed(row->rules, name, false);
  }
  return name;
}

bool is_converted(const ModelFamily& family, std::string_view layer) {
  for (const std::string_view old : kOldNames)
    if (layer.ends_with(old)) return true;
  return has_component(layer, "experts") || loader_name(family, layer) != layer;
}

List<std::string_view> tied_heads(const ModelFamily& family) {
  List<std::string_view> heads;
  if (family.architecture.empty() && family.ties_head) heads.push_back(kHeads[0].name);
  for (const Head& head : kHeads) {
    const auto ties = [&](std::string_view part) { return family.architecture.find(part) != std::string::npos; };
    if (any_word(head.classes, ties)) heads.push_back(head.name);
  }
  return heads;
}

bool stays_float32(std::string_view name) noexcept {
  // Source: transformers 5.24, names in _keep_in_fp32_modules_strict and _keep_in_fp32_modules of its classes that are no layers,
  // and the buffers of rotary embeddings.
  constexpr std::string_view kParts =
      "A_log dt_bias e_score_correction_bias expert_bias time_decay time_first latent_mean latent_std query_tokens "
      "sinks "
      "attn_hc ffn_hc hc_head hc_base hc_fn hc_scale inv_freq rotary_emb";
  return any_word(kParts, [&](std::string_view part) { return has_component(name, part); });
}

bool needs_plain_weight(const ModelFamily& family, std::string_view layer) noexcept {
  return has_layer(kPlainWeights, family, layer);
}

bool needed_plain_weight(const ModelFamily& family, std::string_view layer) noexcept {
  return has_layer(kFormerPlainWeights, family, layer);
}

}  // namespace wasmquant::transformers
