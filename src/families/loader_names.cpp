#include "families/loader_names.h"

#include "families/module_path.h"

namespace wasmquant::families {
namespace {

struct Renamed {
  std::string_view types, rules;
};
constexpr Renamed kRenamed[] = {
#define WASMQUANT_RENAMED(types, rules) {types, rules},
#include "families/loader_names.def"
};

// Where a class with a head keeps the model below it. Files hold names with this prefix or without it, and the loader
// adds or removes it. `first`: first parts of names that lack it.
struct BasePrefix {
  std::string_view types, prefix, first;
};
constexpr BasePrefix kBasePrefixes[] = {
    {"bloom gpt2 falcon gptj gpt_neo gpt_bigcode codegen openai-gpt", "transformer",
     "h wte wpe ln_f word_embeddings word_embeddings_layernorm"},
    {"mpt dbrx", "transformer", "blocks"},
    {"bert", "bert", "encoder"},
    {"roberta xlm-roberta camembert", "roberta", "encoder"},
    {"deberta deberta-v2", "deberta", "encoder"},
    {"electra", "electra", "encoder"},
    {"mpnet", "mpnet", "encoder"},
    {"albert", "albert", "encoder"},
    {"distilbert", "distilbert", "transformer"},
    {"opt", "model", "decoder"},
    {"gpt_neox", "gpt_neox", "layers"},
    {"mamba mamba2", "backbone", "layers"},
    {"", "model", "layers"},  // all others
};

// Heads by the classes that tie them: a part of the class's name.
struct Head {
  std::string_view name, classes;
};
constexpr Head kHeads[] = {
    {"lm_head",
     "ForCausalLM LMHead ForConditionalGeneration MTModel ForImageTextToText ForVisionText2Text ForCausalImageModeling "
     "DoubleHeads FunnelForMaskedLM EuroBertForMaskedLM ModernVBertForMaskedLM SeamlessM4T DiffusionGemma"},
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
    {"proj_out", "Whisper Moonshine CohereAsr"},
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

// Of norms and of weight norms in any family.
constexpr std::string_view kOldNames[] = {"LayerNorm.gamma", "LayerNorm.beta", ".weight_g", ".weight_v"};

// Families whose _init_weights reads the weight of linear layers; `part`: only of layers with such a part.
struct PlainWeight {
  std::string_view types, part;
};
constexpr PlainWeight kPlainWeights[] = {
#define WASMQUANT_PLAIN_WEIGHT(types, part) {types, part},
#include "families/plain_weights.def"
};

bool is_word(std::string_view words, std::string_view text) {
  if (text.empty()) return false;
  while (!words.empty()) {
    const size_t space = words.find(' ');
    if (words.substr(0, space) == text) return true;
    words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
  }
  return false;
}

std::string_view next_word(std::string_view& words) {
  const size_t space = words.find(' ');
  const std::string_view word = words.substr(0, space);
  words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
  return word;
}

std::string renamed(std::string_view rules, std::string_view layer) {
  std::string name(layer);
  bool is_anchored = false;
  while (!rules.empty()) {
    const std::string_view rule = next_word(rules);
    const size_t equals = rule.find('=');
    std::string_view from = rule.substr(0, equals);
    const std::string_view to = rule.substr(equals + 1);
    if (from.starts_with('^')) {
      from.remove_prefix(1);
      if (is_anchored || !name.starts_with(from)) continue;
      name.replace(0, from.size(), to);
      is_anchored = true;
    } else if (const size_t at = name.find(from); at != std::string::npos) {
      name.replace(at, from.size(), to);
    }
  }
  return name;
}

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
    const std::string_view first = next_part(rest);
    if (has_head(family))
      return is_word(row.first, first) ? std::string(row.prefix) + "." + std::string(layer) : std::string(layer);
    return std::string(first == row.prefix && !rest.empty() ? rest : layer);
  }
  return std::string(layer);
}

}  // namespace

std::string loader_name(const ModelFamily& family, std::string_view layer) {
  // TrOCR and Donut: an image model that is read by its own names, and a decoder of any kind.
  const bool is_vit = family.is("vision-encoder-decoder") && layer.starts_with("encoder.encoder.layer.");
  const std::string_view type = is_vit ? "vit" : std::string_view(family.model_type);
  for (const Renamed& row : kRenamed)
    if (is_word(row.types, type)) return renamed(row.rules, layer);
  return with_base_prefix(family, layer);
}

bool is_converted(const ModelFamily& family, std::string_view layer) {
  for (const std::string_view old : kOldNames)
    if (layer.ends_with(old)) return true;
  return has_part(layer, "experts") || loader_name(family, layer) != layer;
}

List<std::string_view> tied_heads(const ModelFamily& family) {
  List<std::string_view> heads;
  for (const Head& head : kHeads) {
    std::string_view classes = head.classes;
    while (!classes.empty())
      if (family.architecture.find(next_word(classes)) != std::string::npos) {
        heads.push_back(head.name);
        break;
      }
  }
  return heads;
}

bool needs_plain_weight(const ModelFamily& family, std::string_view layer) noexcept {
  for (const PlainWeight& row : kPlainWeights)
    if (is_word(row.types, family.model_type) && (row.part.empty() || has_part(layer, row.part))) return true;
  return false;
}

}  // namespace wasmquant::families
