// What a forward pass has of some of its sequences.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/block.h"
#include "model/experts/routing.h"
#include "model/source_text.h"

namespace wasmquant::model {

/// Consecutive whole sequences.
struct Portion {
  size_t first, sequences;                      // sequences
  size_t begin, end;                            // tokens
  size_t source_begin = 0, source_end = 0;      // tokens of an encoder in front of the decoder
  std::vector<float> x = {}, reference_x = {};  // [tokens, hidden], once the portion has run
  // The encoder's stream; once it has run, what the decoder sees of it
  std::vector<float> source = {}, reference_source = {};
  bool is_encoded = false, is_reference_encoded = false;
  std::vector<float> layer_inputs = {};  // [tokens, layers * width]
  KeyValues shared = {}, reference_shared = {};
  Routed routed = {};         // of the layer with experts that ran last
  int64_t joined_layer = -1;  // that layer, if routed.joined is to be added to x
  bool is_embedded = false;   // x has what tables() add
  bool is_normed = false;     // x is the head's input
  size_t tokens() const noexcept { return end - begin; }
};

/// Tokens per portion, unless one sequence is longer: enough to amortise the packing of weights, few enough for the wide
/// activations in between.
inline constexpr size_t kPortionTokens = 512;

std::vector<Portion> portions_of(std::span<const uint32_t> lengths, const SourceText& source);

}  // namespace wasmquant::model
