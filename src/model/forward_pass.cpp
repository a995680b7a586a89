#include "model/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/message.h"
#include "kernels/matmul.h"
#include "model/norm.h"

namespace wasmquant::model {
namespace {

// Tokens per portion, unless one sequence is longer: enough to amortise the packing of weights, few enough for the wide
// activations in between.
constexpr size_t kPortionTokens = 512;

}  // namespace

ForwardPass::ForwardPass(Architecture architecture, InputPrecision precision) : architecture_(std::move(architecture)) {
  block_.inputs.fill(precision);
}

Status ForwardPass::set_tokens(std::span<const int32_t> tokens, std::span<const uint32_t> lengths) {
  size_t count = 0, longest = 0;
  for (const uint32_t length : lengths) {
    if (length == 0) return error_at(ErrorCode::argument_invalid, "tokens", "hold a sequence without tokens");
    count += length;
    longest = std::max<size_t>(longest, length);
  }
  if (count != tokens.size() || longest < 2)
    return error_at(ErrorCode::argument_invalid, "tokens",
                    "{} tokens in {} sequences of {} together; sequences of at least 2 tokens are needed",
                    tokens.size(), lengths.size(), count);
  if (longest > architecture_.max_positions)
    return error_at(ErrorCode::argument_invalid, "tokens",
                    "a sequence of {} tokens; the model has max_position_embeddings {}: cut it into shorter ones",
                    longest, architecture_.max_positions);
  tokens_.assign(tokens.begin(), tokens.end());
  lengths_.assign(lengths.begin(), lengths.end());
  begins_.clear();
  portions_.clear();
  size_t at = 0;
  for (size_t i = 0; i < lengths_.size(); at += lengths_[i++]) {
    begins_.push_back(at);
    const size_t end = at + lengths_[i];
    if (portions_.empty() || end - portions_.back().begin > kPortionTokens) portions_.push_back({i, 0, at, at});
    ++portions_.back().sequences;
    portions_.back().end = end;
    for (size_t token = at; token < end; ++token)
      if (tokens_[token] < 0 || static_cast<uint32_t>(tokens_[token]) >= architecture_.vocabulary)
        return error_at(ErrorCode::argument_invalid, "tokens",
                        "token {} at position {} of sequence {} is not one of the model's {}; was another tokenizer "
                        "used?",
                        tokens_[token], token - at, i, architecture_.vocabulary);
  }
  x_.assign(tokens.size() * architecture_.hidden, 0.0f);
  reference_x_.clear();
  states_.clear();
  runner_ = std::make_unique<BlockRunner>(architecture_, longest);
  loss_.reset();
  next_.clear();
  return {};
}

void ForwardPass::run_embedding(size_t portion, std::span<const float> rows, uint32_t first) noexcept {
  const size_t hidden = architecture_.hidden;
  const Portion& range = portions_[portion];
  for (size_t i = range.begin; i < range.end; ++i) {
    const int64_t row = int64_t{tokens_[i]} - first;
    if (row < 0 || static_cast<size_t>(row) * hidden >= rows.size()) continue;
    const float* const from = rows.data() + static_cast<size_t>(row) * hidden;
    for (size_t j = 0; j < hidden; ++j) x_[i * hidden + j] = from[j] * architecture_.embedding_scale;
  }
}

Status ForwardPass::run(size_t portion, uint32_t layer, const BlockValues& block, std::vector<float>& x,
                        InputSink* sink, bool keep) {
  const size_t hidden = architecture_.hidden;
  const Portion& range = portions_[portion];
  const std::span<float> part{x.data() + range.begin * hidden, (range.end - range.begin) * hidden};
  const std::span<const uint32_t> lengths(lengths_.data() + range.first, range.sequences);
  BlockState* const state = states_.empty() || &x != &x_ ? nullptr : &states_[portion];
  if (state != nullptr && sink != nullptr && !sink->skips(state->at)) *state = {};
  if (keep) return runner_->run(block, layer, lengths, part, sink, state);
  scratch_.assign(part.begin(), part.end());
  return runner_->run(block, layer, lengths, scratch_, sink, state);
}

Status ForwardPass::run_block(size_t portion, uint32_t layer, InputSink* sink, bool keep) {
  return run(portion, layer, block_, x_, sink, keep);
}

Status ForwardPass::run_reference(size_t portion, uint32_t layer, const BlockValues& block, InputSink* sink,
                                  bool keep) {
  if (reference_x_.empty()) reference_x_ = x_;
  return run(portion, layer, block, reference_x_, sink, keep);
}

double ForwardPass::stream_energy() const noexcept {
  double sum = 0;
  for (const float x : x_) sum += double{x} * x;
  return sum / static_cast<double>(tokens_.size());
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
  const size_t first = scores_second_half_ ? length / 2 : 0;
  return {begin + std::min(first, length - 1), begin + length - 1};
}

Status ForwardPass::begin_head(InputSink* sink) {
  normalize({architecture_.norm_epsilon, architecture_.norm_plus_one}, final_norm_, x_.data(), tokens_.size(),
            x_.data());
  if (sink != nullptr) TRY_VOID(sink->accept(architecture_.layers, LinearInput::head, x_, architecture_.hidden));
  quantize_inputs(head_inputs_, x_, architecture_.hidden);
  loss_ = std::make_unique<TokenLoss>(targets());
  next_.assign(sequences(), {});
  return {};
}

std::span<float> ForwardPass::logits(size_t portion, std::span<const float> rows) {
  const Portion& range = portions_[portion];
  const size_t hidden = architecture_.hidden, tokens = range.end - range.begin, width = rows.size() / hidden;
  scratch_.resize(tokens * width);
  product_.resize(std::max(product_.size(), kernels::matmul_workspace(tokens, width, hidden)));
  kernels::matmul({x_.data() + range.begin * hidden, hidden, 1}, {rows.data(), hidden, 1}, hidden, tokens, width,
                  kernels::Update::set, kernels::Region::all, scratch_.data(), width, product_.data());
  if (architecture_.logit_cap > 0) kernels::soft_cap(scratch_, architecture_.logit_cap);
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
  const std::span<float> found = logits(portion, rows);
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
  return uint64_t{a.hidden} * sizeof(float) + kTokenAndLoss;
}

uint64_t ForwardPass::state_bytes(const Architecture& a) noexcept {
  return sizeof(float) * std::max(uint64_t{a.query_columns()}, uint64_t{a.hidden} + std::max(a.hidden, a.intermediate));
}

uint64_t ForwardPass::working_bytes(const Architecture& a, size_t longest) noexcept {
  const uint64_t tokens = std::max(kPortionTokens, longest);
  const uint64_t wide = uint64_t{a.hidden} + 2 * uint64_t{a.query_columns()} + 2 * uint64_t{a.key_columns()} +
                        2 * uint64_t{a.intermediate} +
                        std::max({a.hidden, a.intermediate, a.query_columns()});  // quantized inputs
  return tokens * wide * sizeof(float);
}

}  // namespace wasmquant::model
