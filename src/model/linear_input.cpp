#include "model/linear_input.h"

namespace wasmquant::model {
namespace {

constexpr const char* kAttention[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
constexpr const char* kAttentionOutput[] = {"self_attn.o_proj"};
constexpr const char* kFeedForward[] = {"mlp.gate_proj", "mlp.up_proj"};
constexpr const char* kFeedForwardOutput[] = {"mlp.down_proj"};

}  // namespace

std::span<const char* const> readers_of(LinearInput input) noexcept {
  switch (input) {
    case LinearInput::attention:
      return kAttention;
    case LinearInput::attention_output:
      return kAttentionOutput;
    case LinearInput::feed_forward:
      return kFeedForward;
    case LinearInput::feed_forward_output:
      return kFeedForwardOutput;
    case LinearInput::head:
      break;
  }
  return {};
}

}  // namespace wasmquant::model
