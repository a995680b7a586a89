// What the encoder of an encoder-decoder reads: the first tokens of each sequence, of which the decoder predicts the rest. It sees the token that
// begins texts, then that rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

struct SourceText {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> lengths;  // of the sequences
};

/// What the encoder and what the decoder reads.
struct SplitText {
  SourceText source;
  std::vector<int32_t> tokens;
  std::vector<uint32_t> lengths;
};

/// Of L tokens the encoder reads L / 2 + 1, rounded down, so that those are predicted which llama-perplexity scores. `predicts` false: all of
/// them, to be continued.
SplitText split_text(const Architecture& architecture, std::span<const int32_t> tokens,
                     std::span<const uint32_t> lengths, bool predicts);

}  // namespace wasmquant::model
