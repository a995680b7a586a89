// Portions of the batch go through the embedding, the blocks and the head one after another.
#include "model/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/message.h"
#include "kernels/matmul.h"
#include "model/joined_experts.h"
#include "model/steps/norm.h"
#include "model/steps/streams.h"

namespace wasmquant::model {
namespace {

// Of each kind, full and sliding, one whose keys and values later layers read.
constexpr uint64_t kSharingLayers = 2;

Status check_tokens(const Architecture& a, std::span<const int32_t> tokens, std::span<const uint32_t> lengths,
                    size_t positions) {
  size_t count = 0, longest = 0;
  for (const uint32_t length : lengths) {
    if (length == 0) return error_at(ErrorCode::argument_invalid, "tokens", "hold a sequence without tokens");
    count += length;
    longest = std::max<size_t>(longest, length);
  }
  const bool is_prompt = a.decoder.first > 0 && positions > 0;
  if (count != tokens.size() || longest < (is_prompt ? 1u : 2u))
    return error_at(ErrorCode::argument_invalid, "tokens",
                    "found {} tokens for {} sequences whose lengths add up to {}; a sequence needs at least 2 tokens",
                    tokens.size(), lengths.size(), count);
  longest = std::max(longest, positions);
  if (longest > a.max_positions)
    return error_at(ErrorCode::argument_invalid, "tokens",
                    "a sequence of {} tokens; the model has max_position_embeddings {}: cut it into shorter ones",
                    longest, a.max_positions);
  size_t at = 0;
  for (size_t i = 0; i < lengths.size(); at += lengths[i++])
    for (size_t token = at; token < at + lengths[i]; ++token)
      if (tokens[token] < 0 || static_cast<uint32_t>(tokens[token]) >= a.vocabulary)
        return error_at(ErrorCode::argument_invalid, "tokens",
                        "token {} at position {} of sequence {} is not one of the model's {}; was another tokenizer "
                        "used?",
                        tokens[token], token - at, i, a.vocabulary);
  return {};
}

}  // namespace

ForwardPass::ForwardPass(Architecture architecture, InputPrecision precision) : architecture_(std::move(architecture)) {
  block_.inputs.fill(precision);
}

Status ForwardPass::set_tokens(std::span<const int32_t> tokens, std::span<const uint32_t> lengths, size_t positions) {
  TRY_VOID(check_tokens(architecture_, tokens, lengths, positions));
  positions_ = lengths.size() == 1 ? positions : 0;
  if (architecture_.decoder.first > 0) {
    SplitText split = split_text(architecture_, tokens, lengths, positions_ == 0);
    tokens_ = std::move(split.tokens);
    lengths_ = std::move(split.lengths);
    source_ = std::move(split.source);
    if (positions_ > 0) positions_ -= tokens.size() - 1;
  } else {
    tokens_.assign(tokens.begin(), tokens.end());
    lengths_.assign(lengths.begin(), lengths.end());
  }
  begins_.clear();
  portions_ = portions_of(lengths_, source_);
  for (size_t i = 0, at = 0; i < lengths_.size(); at += lengths_[i++]) begins_.push_back(at);
  states_.clear();
  runners_ =
      BlockRunners(architecture_, std::max<size_t>(*std::max_element(lengths.begin(), lengths.end()), positions));
  loss_.reset();
  next_.clear();
  cached_ = {};
  if (continues()) {
    for (auto* const kept : {&cached_.keys, &cached_.values, &cached_.inputs, &cached_.states})
      kept->resize(architecture_.layers);
    kept_blocks_.resize(architecture_.layers);
    runners_.set_cached(&cached_);
  }
  return {};
}

Status ForwardPass::extend(int32_t token) {
  const size_t past = cached_.past + tokens_.size();
  if (past >= positions_)
    return error_at(ErrorCode::state_invalid, "tokens", "{} of the {} positions of the sequence are taken", past,
                    positions_);
  if (token < 0 || static_cast<uint32_t>(token) >= architecture_.vocabulary)
    return error_at(ErrorCode::argument_invalid, "tokens", "token {} is not one of the model's {}", token,
                    architecture_.vocabulary);
  cached_.past = past;
  tokens_ = {token};
  lengths_ = {1};
  Portion& only = portions_.front();
  only.end = 1;
  next_.clear();
  return {};
}

void ForwardPass::keep_embedding(std::span<const float> rows, uint32_t first) {
  kept_embedding_.resize(size_t{architecture_.vocabulary} * architecture_.hidden);
  std::copy(rows.begin(), rows.end(), kept_embedding_.begin() + static_cast<ptrdiff_t>(first * architecture_.hidden));
}

void ForwardPass::keep_block(uint32_t layer) {
  BlockValues& kept = kept_blocks_[layer];
  for (const BlockWeight& weight : block_weights(architecture_, layer)) {
    std::vector<float>& values = block_[weight.slot];
    if (weight.rows == 0 || weight.is_plain) {
      kept[weight.slot] = values;
      continue;
    }
    std::vector<float>& packed = kept.packed[static_cast<size_t>(weight.slot)];
    packed.resize(kernels::packed_size(weight.rows, weight.columns));
    kernels::pack_columns({values.data(), weight.columns, 1}, weight.columns, weight.rows, packed.data());
  }
  kept.inputs = block_.inputs;
}

void ForwardPass::keep_head(std::span<const float> rows, uint32_t first) {
  const size_t hidden = architecture_.hidden, width = rows.size() / hidden;
  HeadRows& kept = kept_head_.emplace_back();
  kept.first = first;
  kept.width = width;
  kept.packed.resize(kernels::packed_size(width, hidden));
  kernels::pack_columns({rows.data(), hidden, 1}, hidden, width, kept.packed.data());
}

void ForwardPass::run_kept_embedding() noexcept { run_embedding(0, kept_embedding_, 0); }

Status ForwardPass::run_kept_block(uint32_t layer) {
  if (layer == 0) finish_embedding(portions_.front());
  return run(0, layer, kept_blocks_[layer], false, nullptr, true, nullptr);
}

void ForwardPass::run_kept_head() {
  const size_t hidden = architecture_.hidden;
  const float* const last = last_row();
  for (const HeadRows& rows : kept_head_) {
    scratch_.resize(rows.width);
    kernels::multiply_row(last, rows.packed.data(), hidden, rows.width, scratch_.data());
    finish_logits(scratch_, rows.width, rows.first);
    take_largest(scratch_, rows.width, 0, rows.first);
  }
}

bool ForwardPass::has_token(size_t first, size_t end) const noexcept {
  const auto is_in = [&](int32_t token) {
    return static_cast<size_t>(token) >= first && static_cast<size_t>(token) < end;
  };
  return std::any_of(tokens_.begin(), tokens_.end(), is_in) ||
         std::any_of(source_.tokens.begin(), source_.tokens.end(), is_in);
}

List<uint32_t> ForwardPass::sampled_portions(uint64_t tokens) const {
  const uint64_t all = tokens_.size(), wanted = std::min(tokens, all);
  const uint64_t count = std::max<uint64_t>((portions_.size() * wanted + all - 1) / all, 1);
  const uint64_t step = portions_.size() / count;
  List<uint32_t> out;
  // Shifted from step to step, so that portions that are dealt to workers in turn fall to all of them.
  for (uint64_t i = 0; step * i + i % step < portions_.size(); ++i)
    out.push_back(static_cast<uint32_t>(step * i + i % step));
  return out;
}

namespace {

// Writes the rows of tokens that are there.
void take_rows(const Architecture& a, std::span<const int32_t> tokens, std::span<const float> rows, uint32_t first,
               std::vector<float>& out) {
  const size_t hidden = a.hidden;
  out.resize(tokens.size() * hidden);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t row = int64_t{tokens[i]} - first;
    if (row < 0 || static_cast<size_t>(row) * hidden >= rows.size()) continue;
    const float* const from = rows.data() + static_cast<size_t>(row) * hidden;
    for (size_t j = 0; j < hidden; ++j) out[i * hidden + j] = from[j] * a.scales.embedding;
  }
}

}  // namespace

void ForwardPass::run_embedding(size_t portion, std::span<const float> rows, uint32_t first) noexcept {
  Portion& range = portions_[portion];
  range.is_embedded = range.is_normed = false;
  take_rows(architecture_, std::span(tokens_).subspan(range.begin, range.tokens()), rows, first, range.x);
  if (range.is_encoded || architecture_.decoder.first == 0) return;
  const size_t sources = range.source_end - range.source_begin;
  take_rows(architecture_, std::span(source_.tokens).subspan(range.source_begin, sources), rows, first, range.source);
}

void ForwardPass::run_layer_table(size_t portion, std::span<const float> rows, uint32_t first) {
  Portion& range = portions_[portion];
  take_layer_rows(architecture_, std::span(tokens_).subspan(range.begin, range.tokens()), rows, first,
                  range.layer_inputs);
}

void ForwardPass::finish_experts(Portion& portion) const {
  finish_joined(architecture_, portion.routed.joined, portion.x);
  portion.joined_layer = -1;
}

Status ForwardPass::run(size_t portion, uint32_t layer, const BlockValues& block, bool is_reference, InputSink* sink,
                        bool keep, BlockState* state) {
  Portion& range = portions_[portion];
  BlockRunner& runner = runners_.of(layer);
  const bool encodes = layer < architecture_.decoder.first;
  if (encodes && cached_.past > 0) return {};  // the source stays
  std::vector<float>& source = is_reference ? range.reference_source : range.source;
  std::vector<float>& x = encodes ? source : is_reference ? range.reference_x : range.x;
  const std::span<const uint32_t> lengths((encodes ? source_.lengths : lengths_).data() + range.first, range.sequences);
  if (is_decoding(architecture_, layer)) {
    finish_encoder(range, is_reference);
    runner.set_encoded({source, {source_.lengths.data() + range.first, range.sequences}});
  }
  runner.set_routed(&range.routed);
  runner.set_shared(is_reference ? &range.reference_shared : &range.shared, range.layer_inputs);
  if (state != nullptr && sink != nullptr && !sink->skips(state->at)) *state = {};
  if (range.joined_layer >= 0 && range.joined_layer != layer) finish_experts(range);
  if (keep && joins_experts(architecture_, layer)) range.joined_layer = layer;
  if (keep) return runner.run(block, layer, lengths, x, sink, state);
  scratch_ = x;
  return runner.run(block, layer, lengths, scratch_, sink, state);
}

// All tokens are of the first type: a single text.
void ForwardPass::finish_embedding(Portion& portion) noexcept {
  if (std::exchange(portion.is_embedded, true)) return;
  const size_t hidden = architecture_.hidden;
  for (size_t i = 0; i < portion.x.size() && !tables_.types.empty(); ++i) portion.x[i] += tables_.types[i % hidden];
  float* x = portion.x.data();
  for (size_t sequence = portion.first; sequence < portion.first + portion.sequences && !tables_.positions.empty();
       ++sequence)
    for (size_t token = 0; token < lengths_[sequence]; ++token, x += hidden) {
      const size_t at = architecture_.first_position + cached_.past + token;
      const float* const position = tables_.positions.data() + at * hidden;
      for (size_t i = 0; i < hidden; ++i) x[i] += position[i];
    }
  if (architecture_.names.has(ModelPart::embedding_norm))
    normalize({architecture_.norms.epsilon, architecture_.norms.plus_one, architecture_.norms.subtract_mean},
              tables_.norm, tables_.norm_bias, portion.x.data(), portion.tokens(), hidden, portion.x.data());
  if (architecture_.layer_inputs.width > 0)
    finish_layer_inputs(architecture_, tables_.layer_projection, tables_.layer_norm, portion.x, portion.layer_inputs);
  if (architecture_.streams.count > 1) part_streams(architecture_, tables_.stream_in, portion.x);
}

void ForwardPass::finish_encoder(Portion& portion, bool is_reference) const {
  if (std::exchange(is_reference ? portion.is_reference_encoded : portion.is_encoded, true)) return;
  std::vector<float>& x = is_reference ? portion.reference_source : portion.source;
  normalize({architecture_.norms.epsilon, architecture_.norms.plus_one, architecture_.norms.subtract_mean},
            tables_.encoder_norm, {}, x.data(), x.size() / architecture_.hidden, architecture_.hidden, x.data());
}

std::vector<float> ForwardPass::embeddings(Pooling pooling) {
  const size_t hidden = architecture_.hidden;
  if (architecture_.names.has(ModelPart::final_norm))
    for (Portion& portion : portions_) finish_stream(portion);
  std::vector<float> out;
  std::vector<double> sum(hidden);
  for (const Portion& portion : portions_) {
    const float* x = portion.x.data();
    for (size_t sequence = portion.first; sequence < portion.first + portion.sequences; ++sequence) {
      const size_t length = lengths_[sequence], taken = pooling == Pooling::mean ? length : 1;
      const float* const states = pooling == Pooling::last ? x + (length - 1) * hidden : x;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (size_t i = 0; i < taken * hidden; ++i) sum[i % hidden] += double{states[i]};
      for (const double value : sum) out.push_back(static_cast<float>(value / static_cast<double>(taken)));
      x += length * hidden;
    }
  }
  return out;
}

Status ForwardPass::run_block(size_t portion, uint32_t layer, InputSink* sink, bool keep) {
  if (layer == 0) finish_embedding(portions_[portion]);
  BlockState* const state = states_.empty() ? nullptr : &states_[portion];
  return run(portion, layer, block_, false, sink, keep, state);
}

Status ForwardPass::run_reference(size_t portion, uint32_t layer, const BlockValues& block, InputSink* sink,
                                  bool keep) {
  Portion& range = portions_[portion];
  if (layer == 0) finish_embedding(range);
  if (range.reference_x.empty()) {
    range.reference_x = range.x;
    range.reference_source = range.source;
  }
  return run(portion, layer, block, true, sink, keep, nullptr);
}

Status ForwardPass::run_expert(size_t portion, uint32_t layer, uint32_t expert, InputSink* sink, bool keep) {
  Portion& range = portions_[portion];
  BlockState* const state = states_.empty() ? nullptr : &states_[portion];
  if (state != nullptr && sink != nullptr && !sink->skips(state->at)) *state = {};
  std::vector<float>& x = joins_experts(architecture_, layer) ? range.routed.joined.sum : range.x;
  return runners_.of(layer).run_expert(block_, expert_, layer, expert, range.routed,
                                       keep ? std::span(x) : std::span<float>(), sink, state);
}

bool ForwardPass::has_expert(uint32_t expert) const noexcept {
  return std::any_of(portions_.begin(), portions_.end(),
                     [&](const Portion& portion) { return portion.routed.has(expert); });
}

double ForwardPass::stream_energy() const noexcept {
  double sum = 0;
  size_t count = 0;
  for (const Portion& portion : portions_) {
    const bool encodes = architecture_.decoder.first > 0 && !portion.is_encoded;
    for (const float x : encodes ? portion.source : portion.x) sum += double{x} * x;
    count += encodes ? portion.source_end - portion.source_begin : portion.tokens();
  }
  return sum / static_cast<double>(count);
}

std::vector<int32_t> ForwardPass::targets() const {
  std::vector<int32_t> targets(tokens_.size(), -1);
  for (size_t sequence = 0; sequence < lengths_.size(); ++sequence)
    std::copy_n(tokens_.begin() + static_cast<ptrdiff_t>(begins_[sequence]) + 1, lengths_[sequence] - 1,
                targets.begin() + static_cast<ptrdiff_t>(begins_[sequence]));
  return targets;
}

std::pair<size_t, size_t> ForwardPass::scored(size_t sequence) const noexcept {
  const size_t begin = begins_[sequence], length = lengths_[sequence];
  const size_t first = scores_second_half_ && architecture_.decoder.first == 0 ? length / 2 : 0;
  return {begin + std::min(first, length - 1), begin + length - 1};
}

void ForwardPass::finish_stream(Portion& portion) const {
  if (std::exchange(portion.is_normed, true)) return;
  if (portion.joined_layer >= 0) finish_experts(portion);
  if (architecture_.streams.count > 1) join_streams(architecture_, tables_.stream_out, portion.x);
  normalize({architecture_.norms.epsilon, architecture_.norms.plus_one, architecture_.norms.subtract_mean}, final_norm_,
            tables_.final_norm_bias, portion.x.data(), portion.tokens(), architecture_.hidden, portion.x.data());
}

Status ForwardPass::begin_head(InputSink* sink) {
  for (Portion& portion : portions_) {
    if (portion.x.empty() || portion.is_normed) continue;
    finish_stream(portion);
    if (sink != nullptr)
      TRY_VOID(sink->accept(architecture_.layers, LinearInput::head, portion.x, architecture_.hidden));
    quantize_inputs(head_inputs_, portion.x, architecture_.hidden);
  }
  loss_ = continues() ? nullptr : std::make_unique<TokenLoss>(targets());
  next_.assign(sequences(), {});
  return {};
}

std::span<float> ForwardPass::logits(size_t portion, std::span<const float> rows, uint32_t first) {
  return logits_of(portions_[portion].x.data(), portions_[portion].tokens(), rows, first);
}

const float* ForwardPass::last_row() const noexcept {
  const Portion& last = portions_.back();
  return last.x.data() + (last.tokens() - 1) * architecture_.hidden;
}

void ForwardPass::finish_logits(std::span<float> logits, size_t width, uint32_t first) const noexcept {
  const Architecture& a = architecture_;
  for (size_t i = 0; i < logits.size() && !tables_.head_bias.empty(); ++i)
    logits[i] += tables_.head_bias[first + i % width];
  for (size_t i = 0; i < logits.size() && a.scales.logits != 1; ++i) logits[i] *= a.scales.logits;
  if (a.scales.logit_cap > 0) kernels::soft_cap(logits, a.scales.logit_cap);
}

std::span<float> ForwardPass::logits_of(const float* x, size_t tokens, std::span<const float> rows, uint32_t first) {
  const size_t hidden = architecture_.hidden, width = rows.size() / hidden;
  scratch_.resize(tokens * width);
  product_.resize(std::max(product_.size(), kernels::matmul_workspace(tokens, width, hidden)));
  kernels::matmul({x, hidden, 1}, {rows.data(), hidden, 1}, hidden, tokens, width, kernels::Update::set,
                  kernels::Region::all, scratch_.data(), width, product_.data());
  finish_logits(scratch_, width, first);
  return scratch_;
}

void ForwardPass::take_largest(std::span<const float> logits, size_t width, size_t sequence, uint32_t first) noexcept {
  NextToken& best = next_[sequence];
  for (size_t i = 0; i < width; ++i) {
    if (!std::isfinite(logits[i])) best = {-1, std::numeric_limits<float>::infinity()};  // nothing is larger
    if (logits[i] > best.logit) best = {static_cast<int32_t>(first + i), logits[i]};
  }
}

void ForwardPass::run_head(size_t portion, std::span<const float> rows, uint32_t first) {
  const size_t width = rows.size() / architecture_.hidden;
  const Portion& range = portions_[portion];
  if (continues()) return take_largest(logits_of(last_row(), 1, rows, first), width, 0, first);
  const std::span<float> found = logits(portion, rows, first);
  for (size_t sequence = range.first; sequence < range.first + range.sequences; ++sequence) {
    const size_t last = begins_[sequence] + lengths_[sequence] - 1;
    take_largest(found.subspan((last - range.begin) * width, width), width, sequence, first);
  }
  loss_->add(found, width, range.begin, first);
}

double ForwardPass::loss_of(size_t sequence) const noexcept {
  double sum = 0;
  const auto [first, last] = scored(sequence);
  for (size_t position = first; position < last; ++position) sum += loss_->loss(position);
  return sum;
}

uint64_t ForwardPass::bytes_per_token(const Architecture& a) noexcept {
  constexpr uint64_t kTokenAndLoss = 4 + 4 + 4 + 4 + 8;
  const uint64_t routed = a.routing.experts == 0 ? 0 : uint64_t{a.hidden} * sizeof(float) + a.routing.chosen * 8;
  const uint64_t of_layers = layer_columns(a) * sizeof(float);
  const uint64_t shared = a.sizes.keys_of.empty() ? 0 : kSharingLayers * cache_bytes(a) / a.layers;
  return uint64_t{a.streams.count} * a.hidden * sizeof(float) + kTokenAndLoss + routed + of_layers + shared;
}

uint64_t ForwardPass::state_bytes(const Architecture& all) noexcept {
  const Architecture a = widest_layer(all);
  const uint32_t widest = std::max({a.hidden, a.intermediate, a.routing.width});
  return sizeof(float) * std::max(uint64_t{a.query_columns()}, uint64_t{a.hidden} + widest);
}

uint64_t ForwardPass::kept_bytes(size_t rows, size_t columns) noexcept {
  return kernels::packed_size(rows, columns) * sizeof(float);
}

uint64_t ForwardPass::cache_bytes(const Architecture& all) noexcept {
  const Architecture a = widest_layer(all);
  return uint64_t{a.layers} * (a.key_columns() + a.value_columns()) * sizeof(float);
}

uint64_t ForwardPass::working_bytes(const Architecture& all, size_t longest) noexcept {
  const Architecture a = widest_layer(all);
  const uint64_t tokens = std::max(kPortionTokens, longest);
  const uint32_t widest = std::max({a.intermediate, a.routing.width, a.routing.shared_width, a.routing.experts});
  const uint64_t wide = uint64_t{a.hidden} + 2 * uint64_t{a.query_columns()} + 2 * uint64_t{a.key_columns()} +
                        2 * uint64_t{widest} + std::max({a.hidden, widest, a.query_columns()});  // quantized inputs
  const uint64_t latent = a.latent.rank > 0 ? uint64_t{a.query_columns()} + a.attended_columns() + a.latent.rank : 0;
  const uint64_t convolved = a.convolution_width > 0 ? 4 * uint64_t{a.hidden} : 0;
  const Recurrence& r = a.recurrence;
  const uint64_t recurrent = 6 * uint64_t{r.key_columns()} + 5 * uint64_t{r.value_columns()} + 4 * uint64_t{r.heads};
  const uint64_t streams = a.streams.count > 1 ? uint64_t{a.streams.count + 3} * a.hidden : 0;
  const uint64_t gates = a.gated_attention ? 2 * uint64_t{a.query_columns()} : 0;
  return tokens * (wide + latent + convolved + recurrent + gates + streams) * sizeof(float);
}

}  // namespace wasmquant::model
