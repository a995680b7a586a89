#include "pipeline/forward/packed_architecture.h"

#include "pipeline/task/pack_stream.h"

namespace wasmquant {
namespace {

constexpr std::string_view kHead = "wqar\1";  // the last byte is the version

template <class... Fields>
void pack_all(PackStream& stream, Fields&... fields) {
  (stream.pack(fields), ...);
}

// Writes the choice, or reads it. False if it is beyond the last.
template <class Enum>
bool pack_choice(PackStream& stream, Enum& choice, Enum last) {
  auto number = static_cast<uint8_t>(choice);
  stream.pack(number);
  choice = static_cast<Enum>(number);
  return number <= static_cast<uint8_t>(last);
}

bool pack(PackStream& stream, model::Rope& rope) {
  pack_all(stream, rope.theta, rope.factor, rope.low_factor, rope.high_factor, rope.original_positions);
  return pack_choice(stream, rope.scaling, model::Rope::Scaling::llama3);
}

/// False if a choice is not one of its list.
bool pack(PackStream& stream, model::Architecture& a) {
  pack_all(stream, a.family, a.vocabulary, a.hidden, a.intermediate, a.layers, a.heads, a.kv_heads, a.head_dim,
           a.max_positions, a.is_encoder, a.token_types, a.first_position, a.norm_epsilon, a.norm_plus_one,
           a.head_norms, a.post_norms, a.qkv_bias, a.output_bias, a.mlp_bias, a.tied_head, a.rotated_down_input,
           a.embedding_scale, a.attention_scale, a.attention_cap, a.logit_cap, a.window, a.is_sliding);
  const bool has_activation = pack_choice(stream, a.activation, kernels::Activation::gelu);
  const bool has_rope = pack(stream, a.rope), has_sliding_rope = pack(stream, a.sliding_rope);
  return has_activation && has_rope && has_sliding_rope;
}

}  // namespace

std::string packed_architecture(model::Architecture architecture) {
  std::string out(kHead);
  PackStream stream(out, nullptr);
  pack(stream, architecture);
  return out;
}

Result<model::Architecture> read_packed_architecture(std::string_view bytes) {
  if (!bytes.starts_with(kHead))
    return error_at(ErrorCode::argument_invalid, "byte 0",
                    "is not the beginning of an architecture that this version packs; use module and worker of one "
                    "version");
  model::Architecture read;
  PackStream stream(bytes, kHead.size(), bytes.size(), nullptr);
  const bool has_choices = pack(stream, read);
  TRY_VOID(stream.finish("the architecture"));
  if (!has_choices || !model::holds_together(read))
    return error_at(ErrorCode::argument_invalid, "architecture", "has sizes or choices that no model has");
  return read;
}

}  // namespace wasmquant
