// The family of a checkpoint according to config.json: which class transformers builds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"

namespace wasmquant::families {

/// The identity of a model.
struct ModelFamily {
  std::string model_type;         // "qwen2_vl"; "" without config.json
  std::string text_model_type;    // that of text_config; "" without one
  List<std::string> model_types;  // every model_type in config.json: those of towers and backbones, too
  std::string architecture;       // first of architectures: "Qwen2VLForConditionalGeneration"
  int64_t hidden_layers = 0;      // num_hidden_layers of the language model; 0: unknown
  bool is_quantized = false;      // config.json has a quantization_config
  bool ties_head = false;         // tie_word_embeddings is true

  /// Parsed from config.json; null if the folder has none.
  static ModelFamily read(const json::Value& config);

  /// Whether `type` is the type of the model or of its language model.
  bool is(std::string_view type) const noexcept { return model_type == type || text_model_type == type; }
  /// Whether `type` is the type of any part of the model.
  bool has(std::string_view type) const noexcept;
  /// Whether the class generates text. Only then are vision and audio encoders towers of a language model; in CLIP or
  /// ViT they are the model. Assumed without config.json.
  bool generates() const noexcept;
};

}  // namespace wasmquant::families
