// The words of forward.def.
#pragma once
#include <cstdint>
#include <string_view>

namespace wasmquant::families::forward {

/// Layers whose attention sees only a window of keys. layer_types of config.json, if it is there, says so for all but the first two.
enum class Windows : uint8_t {
  none,
  all,             // every layer, when sliding_window is a number
  from_layer,      // use_sliding_window: layers from max_window_layers on
  all_but_second,  // all but every second, or every sliding_window_pattern-th; of period 0 those of layer_types
  all_but_first,   // all but the first of each global_attn_every_n_layers
  chunks           // those that rotate see a chunk of attention_chunk_size
};

inline constexpr uint32_t kLayerNorms = 1;        // norms subtract the mean
inline constexpr uint32_t kPlusOneNorms = 2;      // norms multiply by 1 + weight
inline constexpr uint32_t kScaledEmbedding = 4;   // by the root of the width
inline constexpr uint32_t kTied = 8;              // the head is the embedding if config.json does not say
inline constexpr uint32_t kTanhGelu = 16;         // "gelu" means that with tanh
inline constexpr uint32_t kEncoder = 32;          // a token also sees those after it
inline constexpr uint32_t kPaddedPositions = 64;  // positions are counted from behind the padding token's
inline constexpr uint32_t kWholeNorms = 128;      // queries and keys are normed over all heads together
inline constexpr uint32_t kNormsBehindRope = 256;
inline constexpr uint32_t kParallel = 512;         // attention and feed-forward read the same residual stream
inline constexpr uint32_t kPairs = 1024;           // neighbours rotate, not halves of a head
inline constexpr uint32_t kUnrotated = 2048;       // no rotary embedding
inline constexpr uint32_t kRotatedWindows = 4096;  // with windows, only layers that have one rotate
inline constexpr uint32_t kTwoRopes = 8192;        // layers with windows have a rotation of their own
inline constexpr uint32_t kSomeUnrotated =
    16384;  // no_rope_layers, or every no_rope_layer_interval-th layer, does not rotate
inline constexpr uint32_t kSlopes = 1 << 15;      // keys have a slope of their distance by head (ALiBi)
inline constexpr uint32_t kTransposed = 1 << 16;  // linear layers of blocks are stored [in, out]
inline constexpr uint32_t kFourfold = 1 << 17;    // the feed-forward is four times as wide if config.json does not say
inline constexpr uint32_t kMultiQuery =
    1 << 18;  // multi_query: all queries read one key, unless new_decoder_architecture
inline constexpr uint32_t kTwoAhead = 1 << 19;          // the table of positions begins with two that no token has
inline constexpr uint32_t kSigmoidScores = 1 << 20;     // of experts: sigmoids, not a softmax over all
inline constexpr uint32_t kChosenSoftmax = 1 << 21;     // a softmax over the chosen ones
inline constexpr uint32_t kNormalizedScores = 1 << 22;  // those of a token's experts add up to one
inline constexpr uint32_t kClampedGates = 1 << 23;      // experts' gates and ups alternate and are clamped
inline constexpr uint32_t kBestOfGroup = 1 << 24;       // groups of experts are chosen by their best, not by two

inline constexpr uint32_t kGatedQueries = 1 << 25;   // each head of queries has as many gates behind it
inline constexpr uint32_t kDeltaNet = 1 << 26;       // what is no attention is a gated delta net
inline constexpr uint32_t kStateSpace = 1 << 27;     // or Mamba 2; a short convolution otherwise
inline constexpr uint32_t kSelective = 1 << 29;      // or Mamba 1
inline constexpr uint32_t kSplitLayers = 1 << 30;    // a layer mixes tokens or feeds forward, as its type says
inline constexpr uint32_t kRotatedByName = 1 << 28;  // only if position_embedding_type is "rope"

/// A row of forward.def.
struct Row {
  std::string_view model_type, names;
  Windows windows;
  uint8_t period;
  uint32_t traits;
  std::string_view keys;

  /// Decoders, with an encoder in front or without.
  constexpr bool predicts() const noexcept { return !has(kEncoder) || keys.find("decoder=") != keys.npos; }
  constexpr bool has(uint32_t trait) const noexcept { return (traits & trait) != 0; }
};

inline constexpr Row kRows[] = {
#define WASMQUANT_NAMES(part, words)
#define WASMQUANT_FORWARD(type, names, windows, period, traits, keys) \
  {type, names, Windows::windows, period, traits, keys},
#include "families/table/forward.def"
};

/// Words that several rows have.
struct NamesPart {
  std::string_view name, words;
};
inline constexpr NamesPart kParts[] = {
#define WASMQUANT_NAMES(part, words) {part, words},
#define WASMQUANT_FORWARD(type, names, windows, period, traits, keys)
#include "families/table/forward.def"
};

}  // namespace wasmquant::families::forward
