#include "runtimes/llama_cpp/limits.h"

#include <iterator>
#include <string>

#include "core/message.h"
#include "families/config_reader.h"

namespace wasmquant::llama_cpp {
namespace {

using conversion::Family;
using conversion::Hyperparameters;

// llama.cpp divides queries by the root of the head size, or for the 27B models (46 layers of Gemma 2, 62 of Gemma 3) by
// that of hidden_size / heads.
void check_attention_scale(const families::ConfigReader& config, const Family& family,
                           const Hyperparameters& parameters, DiagnosticList& diagnostics) {
  if (!family.converts_with(families::kSlides)) return;
  const auto scalar = config.number("query_pre_attn_scalar");
  const bool is_27b = parameters.layers == family.layers_of_27b;
  const uint32_t width = config.count("hidden_size").value_or(0);
  const uint32_t expected = is_27b ? width / parameters.heads : parameters.head_width;
  if (!scalar || *scalar == expected) return;
  diagnostics.warning_in("attention-scale-lost", "config.json: ", "query_pre_attn_scalar", nullptr,
                         "GGUF has no key for it: llama.cpp uses {} for this model, so attention differs slightly",
                         expected);
}

void check_rotated_layers(const json::Value& rotated, const Family& family, DiagnosticList& diagnostics) {
  if (!family.converts_with(families::kFourthUnrotated) || !rotated.is_array()) return;
  constexpr uint32_t kPeriod = 4;
  uint32_t number = 0, others = 0;
  for (const json::Value& layer : rotated.items()) others += (layer.as_integer() != 0) != (++number % kPeriod != 0);
  if (others == 0) return;
  diagnostics.warning("loader-limit", "config.json: /no_rope_layers",
                      text_of("GGUF has no key for it: llama.cpp leaves every fourth layer without rotary embeddings, "
                              "which is not so for {} layers of this model, so it computes something else",
                              others),
                      "write a folder in another format");
}

// By the number of enum llama_pooling_type, from 1.
constexpr const char* kPoolings[] = {"mean", "cls", "lasttoken"};

}  // namespace

void warn_of_config(const json::Value& config, const Family& family, const Hyperparameters& parameters,
                    DiagnosticList& diagnostics) {
  check_attention_scale(families::ConfigReader(config), family, parameters, diagnostics);
  check_rotated_layers(config["no_rope_layers"], family, diagnostics);
}

void warn_of_modules(const families::SentenceModules& modules, DiagnosticList& diagnostics) {
  for (const families::SentenceModule& module : modules.list) {
    if (module.type == "Pooling" || module.type == "Normalize") continue;
    diagnostics.warning("loader-limit", "modules.json",
                        text_of("{} is left out: llama.cpp computes no {} behind the pooling, so the embeddings are "
                                "not those of sentence-transformers",
                                module.path, module.type == "Dense" ? "dense layer" : "module of this class"),
                        "write a folder in another format, which keeps it, or compute it yourself");
  }
}

uint32_t pooling_type(const families::SentenceModules& modules, DiagnosticList& diagnostics) {
  const List<std::string>& modes = modules.pooling;
  if (modes.empty()) return 0;
  for (uint32_t i = 0; i < std::size(kPoolings); ++i)
    if (modes.size() == 1 && modes[0] == kPoolings[i]) return i + 1;
  std::string all;
  for (const std::string& mode : modes) all += text_of("{}{}", all.empty() ? "" : " and ", mode);
  diagnostics.warning("loader-limit", modules.pooling_file,
                      text_of("the GGUF file has no pooling key, because llama.cpp supports only mean, cls and "
                              "lasttoken, and this model uses {}; its embeddings will differ from those of "
                              "sentence-transformers",
                              all),
                      "write a folder in another format, or pool the states of the tokens yourself");
  return 0;
}

}  // namespace wasmquant::llama_cpp
