#include "pipeline/forward/packed_architecture.h"

#include "pipeline/task/pack_stream.h"

namespace wasmquant {
namespace {

constexpr std::string_view kHead = "wqar\12";  // the last byte is the version

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
  pack_all(stream, rope.theta, rope.factor, rope.low_factor, rope.high_factor, rope.fast_rotations, rope.slow_rotations,
           rope.is_truncated, rope.original_positions, rope.amplitude, rope.short_factors, rope.long_factors,
           rope.share, rope.is_pairs);
  return pack_choice(stream, rope.scaling, model::Rope::Scaling::proportional);
}

bool pack(PackStream& stream, model::Routing& routing) {
  pack_all(stream, routing.experts, routing.chosen, routing.width, routing.shared_width, routing.groups,
           routing.chosen_groups, routing.is_normalized, routing.scale, routing.gate_limit, routing.gate_slope,
           routing.group_best, routing.scales_input, routing.is_input_major);
  return pack_choice(stream, routing.scores, model::Routing::Scores::softmax_of_chosen);
}

/// False if a choice is not one of its list.
bool pack(PackStream& stream, model::Architecture& a) {
  pack_all(stream, a.family, a.vocabulary, a.hidden, a.intermediate, a.layers, a.heads, a.kv_heads, a.head_dim,
           a.max_positions, a.is_encoder, a.token_types, a.first_position, a.norms.epsilon, a.norms.plus_one,
           a.norms.subtract_mean, a.norms.over_heads, a.norms.behind_rope, a.has_slopes, a.is_transposed, a.is_parallel,
           a.tied_head, a.rotated_down_input, a.scales.embedding, a.scales.residual, a.scales.logits, a.scales.qkv_clip,
           a.scales.attention, a.scales.attention_cap, a.scales.logit_cap, a.window, a.is_chunked, a.query_growth.rate,
           a.query_growth.span, a.query_growth.is_unrotated, a.is_sliding, a.is_rotated, a.has_experts,
           a.sizes.head_dims, a.sizes.kv_heads, a.sizes.widths, a.sizes.has_values, a.sizes.keys_of,
           a.layer_inputs.width, a.layer_inputs.tokens, a.streams.count, a.streams.active, a.streams.low_rank,
           a.streams.gate_limits, a.latent.rank, a.latent.query_rank, a.latent.rope_dim, a.latent.value_dim,
           a.relative.buckets, a.relative.farthest, a.relative.has_own_tables, a.gated_attention, a.convolution_width,
           a.mixers, a.is_split, a.factors, a.recurrence.heads, a.recurrence.key_heads, a.recurrence.key_dim,
           a.recurrence.value_dim, a.recurrence.norm_columns, a.recurrence.norms_first, a.recurrence.least_step,
           a.recurrence.largest_step, a.recurrence.step_rank, a.recurrence.norm_epsilon);
  std::string names = a.names.text();
  stream.pack(names);
  a.names = model::ModelNames(names);
  names = a.decoder.names.text();
  pack_all(stream, a.decoder.first, a.decoder.start, names);
  a.decoder.names = model::ModelNames(names);
  const bool has_activation = pack_choice(stream, a.activation, kernels::Activation::squared_relu);
  const bool has_rope = pack(stream, a.rope), has_sliding_rope = pack(stream, a.sliding_rope);
  const bool has_scores = pack(stream, a.routing);
  return has_activation && has_rope && has_sliding_rope && has_scores;
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
