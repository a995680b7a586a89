// The words of families.def.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace wasmquant::families {

/// Layers whose attention sees only a window of keys.
enum class Windows : uint8_t {
  none,
  all,            // every layer, when sliding_window is a number
  from_layer,     // use_sliding_window: layers from max_window_layers on
  all_but_second  // all but every second, or every sliding_window_pattern-th
};

// Of the forward pass.
inline constexpr uint16_t kRuns = 1, kQkvBias = 2, kHeadNorms = 4, kPostNorms = 8;
inline constexpr uint16_t kGemma = 16;             // 1 + weight, scaled embedding, GeLU, tied head
inline constexpr uint16_t kCapped = 32;            // logits are capped even if config.json does not say so
inline constexpr uint16_t kEncoder = 64;           // every token sees every other one; learned positions
inline constexpr uint16_t kPaddedPositions = 128;  // positions are counted from behind the padding token's

/// Tables of tensor names (gguf_conversion/families.cpp).
enum class GgufRows : uint8_t { none, decoder, gemma, gemma2, gpt2, bert };

// Of the GGUF file.
inline constexpr uint16_t kInterleavesHeads = 1;  // pairs of rotary dimensions are neighbours
inline constexpr uint16_t kAddsOneToNorms = 2;
inline constexpr uint16_t kLayerNorms = 4;        // norms subtract the mean and have layer_norm_epsilon
inline constexpr uint16_t kLearnedPositions = 8;  // no rotary embeddings
inline constexpr uint16_t kWideHeads = 16;        // heads of 256 if config.json does not say their width
inline constexpr uint16_t kSlides = 32;  // windows and caps of attention are keys, and query_pre_attn_scalar counts
inline constexpr uint16_t kLongDefaults = 64;    // 131072 positions, 8 heads of which 4 hold keys, a base of 10^6
inline constexpr uint16_t kFourfold = 128;       // the feed-forward is four times as wide if config.json does not say
inline constexpr uint16_t kBidirectional = 256;  // attention is not causal, epsilons are 10^-12

/// A row of families.def.
struct FamilyRow {
  const char* model_type;
  Windows windows;
  uint8_t period;
  uint16_t forward;
  const char* architecture;
  GgufRows rows;
  uint16_t gguf;
  uint8_t layers_of_27b;

  constexpr bool runs_with(uint16_t trait) const noexcept { return (forward & trait) != 0; }
  constexpr bool converts_with(uint16_t trait) const noexcept { return (gguf & trait) != 0; }
};

inline constexpr FamilyRow kFamilyRows[] = {
#define WASMQUANT_FAMILY(type, windows, period, forward, architecture, rows, gguf, layers_of_27b) \
  {type, Windows::windows, period, forward, architecture, GgufRows::rows, gguf, layers_of_27b},
#include "families/table/families.def"
};

}  // namespace wasmquant::families
