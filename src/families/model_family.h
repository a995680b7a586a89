// What config.json says of a checkpoint's family: which class transformers builds from it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace wasmquant::families {

struct ModelFamily {
  std::string model_type;       // "qwen2_vl"; "" without config.json
  std::string text_model_type;  // that of text_config; "" without one
  std::string architecture;     // first of architectures: "Qwen2VLForConditionalGeneration"
  int64_t hidden_layers = 0;    // num_hidden_layers of the language model; 0: not said
  bool is_quantized = false;    // config.json has a quantization_config

  /// Of config.json's text, or of none. Errors: json-invalid.
  static Result<ModelFamily> read(std::string_view config_text);

  /// Whether `type` is the model's type, or that of its language model.
  bool is(std::string_view type) const noexcept { return model_type == type || text_model_type == type; }
  /// Whether the class generates text. Only then are vision and audio encoders towers beside a language model; in CLIP
  /// or ViT they are the model. Unknown without config.json, and then taken to be so.
  bool generates() const noexcept;
};

}  // namespace wasmquant::families
