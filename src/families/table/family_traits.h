// The words of families.def.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace wasmquant::families {

inline constexpr uint32_t kInterleavesHeads = 1;  // pairs of rotary dimensions are neighbours
inline constexpr uint32_t kAddsOneToNorms = 2;
inline constexpr uint32_t kLayerNorms = 4;        // norms subtract the mean and have layer_norm_epsilon
inline constexpr uint32_t kLearnedPositions = 8;  // no rotary embeddings
inline constexpr uint32_t kWideHeads = 16;        // heads of 256 if config.json does not say their width
inline constexpr uint32_t kSlides = 32;  // windows and caps of attention are keys, and query_pre_attn_scalar counts
inline constexpr uint32_t kLongDefaults = 64;    // 131072 positions, 8 heads of which 4 hold keys, a base of 10^6
inline constexpr uint32_t kFourfold = 128;       // the feed-forward is four times as wide if config.json does not say
inline constexpr uint32_t kBidirectional = 256;  // attention is not causal, epsilons are 10^-12
inline constexpr uint32_t kFactors = 512;        // has the factors of Llama 3.1's rotary embeddings as a tensor
inline constexpr uint32_t kMixedLayers = 1024;   // some layers have other tensors: experts, convolutions
inline constexpr uint32_t kSkipsMore =
    4096;                                    // layers beyond num_hidden_layers, which predict more tokens, are left out
inline constexpr uint32_t kIfRouted = 8192;  // only models with experts
inline constexpr uint32_t kIfHybrid = 16384;    // only models some of whose layers have no attention
inline constexpr uint32_t kIfHeadless = 32768;  // only models whose class has no head
inline constexpr uint32_t kByteMerges =
    65536;  // BPE of characters, with a token for each byte, is "gemma4" and not scored
inline constexpr uint32_t kFourthUnrotated = 2048;  // llama.cpp leaves every fourth layer without rotary embeddings

inline constexpr uint32_t kIfSlopes = 1 << 18;  // only models whose position_embedding_type is "alibi"

inline constexpr uint32_t kSees = 1 << 17;       // keys are those of vision_config
inline constexpr uint32_t kTellsPass = 1 << 20;  // its GGUF files tell all that a forward pass needs to know

/// A row of families.def.
struct FamilyRow {
  const char* model_type;
  const char* architecture;
  uint32_t gguf;
  uint8_t layers_of_27b;

  constexpr bool converts_with(uint32_t trait) const noexcept { return (gguf & trait) != 0; }
};

inline constexpr FamilyRow kFamilyRows[] = {
#define WASMQUANT_FAMILY(type, architecture, gguf, layers_of_27b) {type, architecture, gguf, layers_of_27b},
#include "families/table/families.def"
};

/// The rows of projectors.def: towers and projectors, files of their own.
inline constexpr FamilyRow kProjectorRows[] = {
#define WASMQUANT_TENSORS(name, rows)
#define WASMQUANT_PROJECTOR(type, gguf, rows, keys) {type, "clip/" type, (gguf) | kSees, 0},
#include "families/table/projectors.def"
};

}  // namespace wasmquant::families
