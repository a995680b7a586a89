// Model families that can be converted from Hugging Face's layout to GGUF: the mapping of tensors and of their values.
// Names are those of transformers' modules and of llama.cpp's architectures.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"
#include "families/table/family_traits.h"

namespace wasmquant::conversion {

/// The kind of a tensor with respect to its values.
enum class TensorKind : uint8_t {
  plain,
  norm,            // Gemma stores w for a norm that multiplies by 1 + w; GGUF stores 1 + w
  query,           // RoPE pairs: transformers keeps the halves of a head's rows apart, llama.cpp's "llama"
  key,             // architecture interleaves them; key has as many heads as there are key/value heads
  conv1d,          // GPT-2 stores [in, out], GGUF [out, in]
  left_out,        // no counterpart in GGUF
  other_modality,  // vision and audio: not part of a language model's GGUF
};

/// One module: its "weight" and "bias" go to the same parameters of the target.
struct TensorRow {
  const char* source;  // leading '#': in a layer, after its number; trailing '*': any suffix
  const char* target;  // after "blk.<layer>." for layers; null: left out
  TensorKind kind = TensorKind::plain;
};

/// One supported family: a row of families.def with an architecture.
using Family = families::FamilyRow;

/// By model_type of config.json (or of its text_config). Null if unsupported.
const Family* family_of(const json::Value& config) noexcept;
/// By llama.cpp's name, of several the first that the forward pass runs. Null if unsupported.
const Family* family_of_architecture(std::string_view architecture) noexcept;
/// "llama, mistral, …" for messages.
std::string family_names();

/// The target of a source tensor.
struct TensorMatch {
  const TensorRow* row = nullptr;  // null: not a tensor of this family
  std::string name;                // in GGUF; empty when left out
  int64_t layer = -1;              // -1: not in a layer
};
/// Finds the row of a source tensor.
TensorMatch match_tensor(const Family& family, std::string_view name);

}  // namespace wasmquant::conversion
