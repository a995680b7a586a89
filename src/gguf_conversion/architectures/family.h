// Model families that can be converted from Hugging Face's layout to GGUF: the mapping of tensors and of their values.
// Names are those of transformers' modules and of llama.cpp's architectures.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "families/table/family_traits.h"

namespace wasmquant::conversion {

/// The kind of a tensor with respect to its values.
enum class TensorKind : uint8_t {
  plain,
  norm,            // Gemma stores w for a norm that multiplies by 1 + w; GGUF stores 1 + w
  query,           // RoPE pairs: transformers keeps the halves of a head's rows apart, llama.cpp's "llama"
  key,             // architecture interleaves them; key has as many heads as there are key/value heads
  conv1d,          // GPT-2 stores [in, out], GGUF [out, in]
  short_conv,      // a convolution of each channel by itself, [channels, 1, width] as [channels, width]
  left_out,        // no counterpart in GGUF
  other_modality,  // vision and audio: not part of a language model's GGUF
  predictor,       // of layers that predict more than the next token, which the file is written without
  all_tokens,      // a table of fewer tokens than vocab_size, of which GGUF has zeros for the others
  // Those of arranged_tensors.h:
  decay,        // the logarithm of a decay rate a, of which GGUF has -a
  input_major,  // a matrix [in, out] of each expert; the outputs of several targets follow each other
  columns,      // the groups are those of the columns
  grouped,      // a vector, of which GGUF has one row for each group
  paired,       // the same, or a vector of each expert; the outputs of the targets alternate
  times,        // a convolution [out, channels, times, height, width], of which each target has one time
  pixels,       // a matrix [out, pixels * 3] of square patches, as [out, 3, height, width]
  token_row,    // an embedding, of which GGUF has the row of one token; its text is the groups
};

/// Tensors that have 16 bits where llama-quantize leaves them F32.
enum class HalfPrecision : uint8_t {
  never,
  where_asked,  // in files of F16
  as_asked,     // in files of F16 and of BF16, and their type
  for_floats,   // in files of any float
};

/// One supported family: a row of families.def.
using Family = families::FamilyRow;

/// By model_type of config.json (or of its text_config). Null if unsupported.
const Family* family_of(const json::Value& config) noexcept;
/// The tower and projector of a model, by the model_type of its vision_config or its own. Null if there is no row.
const Family* projector_of(const json::Value& config) noexcept;
/// "gemma3, smolvlm, …", for messages.
std::string projector_names();
/// llama.cpp's name: what keys begin with.
std::string_view architecture_name(const Family& family) noexcept;
/// By llama.cpp's name, of several the first whose files tell what a forward pass needs. Null if unsupported.
const Family* family_of_architecture(std::string_view architecture) noexcept;
/// "llama, mistral, …" for lists in guides.
std::string family_names();
/// For messages: which they are, with the few whose names begin most like `model_type`.
std::string families_near(std::string_view model_type);
/// The keys of its architecture's row of architectures.def, and its own.
std::array<std::string_view, 2> keys_of(const Family& family) noexcept;

/// The target of a source tensor.
struct TensorMatch {
  bool is_known = false;  // a tensor of this family
  TensorKind kind = TensorKind::plain;
  bool adds_axis = false;  // GGUF has one more axis, of length 1
  HalfPrecision half = HalfPrecision::never;
  std::string name;          // in GGUF, of the whole or of the first part; empty when left out
  List<std::string> more;    // of the other parts; empty ones are left out
  std::string_view groups;   // how rows are divided (row_groups.h); empty: in equal parts
  std::string_view factors;  // keys of config.json, each behind '*', by which values are multiplied
  int64_t layer = -1;        // -1: not in a layer
  int64_t expert = -1;       // which of those that are stacked in `name`; -1: none
};
/// Finds the row of a source tensor. Without `config`, conditions of rows hold.
TensorMatch match_tensor(const Family& family, std::string_view name, const json::Value* config = nullptr);

}  // namespace wasmquant::conversion
