// Model families that can go from Hugging Face's folder layout to GGUF: which tensor is which, and how its values
// change on the way. Names are those of transformers' modules and of llama.cpp's architectures.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"

namespace wasmquant::conversion {

/// What a tensor is, as far as its values are concerned.
enum class TensorKind : uint8_t {
  plain,
  norm,      // Gemma stores w for a norm that multiplies by 1 + w; GGUF stores 1 + w
  query,     // rows of a head: transformers keeps the halves that rotary embedding pairs apart, llama.cpp's "llama"
  key,       // architecture keeps them side by side; key has as many heads as there are key/value heads
  conv1d,    // GPT-2 stores [in, out], GGUF [out, in]
  left_out,  // no place and no use in GGUF
  other_modality,  // vision and audio: no place in a language model's GGUF
};

/// One module: its "weight" and "bias" go to the same parameters of the target.
struct TensorRow {
  const char* source;  // '#' in front: of a layer, behind its number; '*' at the end: whatever follows
  const char* target;  // behind "blk.<layer>." when of a layer; null: left out
  TensorKind kind = TensorKind::plain;
};

struct Family {
  const char* model_types;                 // of config.json, "a|b"
  const char* architecture;                // of GGUF
  std::span<const TensorRow> own, common;  // own rows go before
  const char* prefixes;                    // that modules may stand under, "a|b": the longer ones first
  const char* layers;                      // what stands before the number of a layer
  bool interleaves_heads = false, adds_one_to_norms = false;
  bool has_layer_norm = false;  // norms subtract the mean and have layer_norm_epsilon
};

/// By model_type of config.json (of its text_config when it has one). Null when it is none of them.
const Family* family_of(const json::Value& config) noexcept;
/// "llama, mistral, …" for messages.
std::string family_names();

struct TensorMatch {
  const TensorRow* row = nullptr;  // null: not a tensor of this family
  std::string name;                // in GGUF; empty when left out
  int64_t layer = -1;              // -1: of no layer
};
TensorMatch match_tensor(const Family& family, std::string_view name);

}  // namespace wasmquant::conversion
