// What a forward pass has of some of its sequences.
#pragma once
#include <cstddef>
#include <vector>

#include "model/block.h"
#include "model/experts/routing.h"

namespace wasmquant::model {

/// Consecutive whole sequences.
struct Portion {
  size_t first, sequences;                      // sequences
  size_t begin, end;                            // tokens
  std::vector<float> x = {}, reference_x = {};  // [tokens, hidden], once the portion has run
  std::vector<float> layer_inputs = {};         // [tokens, layers * width]
  KeyValues shared = {}, reference_shared = {};
  Routed routed = {};         // of the layer with experts that ran last
  int64_t joined_layer = -1;  // that layer, if routed.joined is to be added to x
  bool is_embedded = false;   // x has what tables() add
  bool is_normed = false;     // x is the head's input
  size_t tokens() const noexcept { return end - begin; }
};

}  // namespace wasmquant::model
