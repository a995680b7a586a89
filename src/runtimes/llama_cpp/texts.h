// What people are told of llama.cpp and its programs: {} are filled in by text_of and error_at.
#pragma once

namespace wasmquant::llama_cpp {

/// Whose names these tensors have, and what merges an adapter.
inline constexpr char kName[] = "llama.cpp";
inline constexpr char kMergesAdapters[] = "llama-export-lora";

// ---- tensors and types
inline constexpr char kNoCacheScales[] = "{} scales of the key-value cache are left out: llama.cpp has none";
inline constexpr char kTypesOfItsOwn[] =
    "GGUF stores llama.cpp's types, which define their own rounding: use a preset like q4_k_m or q8_0, or a config "
    "with \"dialect\": \"gguf\", which may list {}; and calibration or an imatrix for importance";
inline constexpr char kWantsImportance[] =
    "{} is meant for an importance matrix: llama-quantize refuses it without one, because the result is of little use";
inline constexpr char kShrinksEmbeddings[] =
    "the embeddings stay as large as they are in {}; a GGUF file has them in 8 or fewer bits, too: use q8_0 or q4_k_m "
    "(format gguf) where llama.cpp will run it";

// ---- rotations
inline constexpr char kRotatedSource[] =
    "the runtime has to rotate inputs of the model's layers, and llama.cpp does not; start from the model before it "
    "was rotated";
inline constexpr char kRotatedDown[] =
    "the runtime has to rotate the input of down_proj, and llama.cpp does not; set it to false";

// ---- tokenizers
inline constexpr char kUnknownPretokenizer[] =
    "llama.cpp has no name for the way this tokenizer splits text; the file says \"default\", so some texts will get "
    "other tokens";
inline constexpr char kMissingBytes[] =
    "the vocabulary lacks some of the 256 byte tokens <0x00> … <0xFF>: llama.cpp loads the file, but aborts on texts "
    "that need them";
inline constexpr char kIgnoresTemplate[] =
    "it is neither a text nor a list of named templates, and llama.cpp's converter ignores it";
inline constexpr char kTemplatesWithJinjaOnly[] = "llama.cpp's converter reads them next to chat_template.jinja only";

}  // namespace wasmquant::llama_cpp
