#include "model/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/message.h"
#include "kernels/matmul.h"
#include "model/norm.h"

namespace wasmquant::model {
namespace {

// Tokens per portion: enough to amortise the packing of weights, few enough for the wide activations in between.
constexpr size_t kPortionTokens = 512;

size_t sequences_per_portion(size_t length) noexcept { return std::max<size_t>(kPortionTokens / length, 1); }

}  // namespace

ForwardPass::ForwardPass(Architecture architecture, InputPrecision precision)
    : architecture_(std::move(architecture)), precision_(precision) {}

Status ForwardPass::set_tokens(std::span<const int32_t> tokens, size_t length) {
  if (length < 2 || tokens.empty() || tokens.size() % length != 0)
    return error_at(ErrorCode::argument_invalid, "tokens",
                    "{} tokens in sequences of {}; whole sequences of at least 2 tokens are needed", tokens.size(),
                    length);
  if (length > architecture_.max_positions)
    return error_at(ErrorCode::argument_invalid, "tokens",
                    "sequences of {} tokens; the model has max_position_embeddings {}: cut them into shorter ones",
                    length, architecture_.max_positions);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= architecture_.vocabulary)
      return error_at(
          ErrorCode::argument_invalid, "tokens",
          "token {} at position {} of sequence {} is not one of the model's {}; was another tokenizer used?", tokens[i],
          i % length, i / length, architecture_.vocabulary);
  length_ = length;
  portion_ = sequences_per_portion(length);
  tokens_.assign(tokens.begin(), tokens.end());
  x_.assign(tokens.size() * architecture_.hidden, 0.0f);
  reference_x_.clear();
  runner_ = std::make_unique<BlockRunner>(architecture_, precision_, length);
  loss_.reset();
  next_.clear();
  return {};
}

ForwardPass::Range ForwardPass::range_of(size_t portion) const noexcept {
  const size_t step = portion_ * length_, begin = std::min(portion * step, tokens_.size());
  return {begin, std::min(begin + step, tokens_.size())};
}

void ForwardPass::run_embedding(size_t portion, std::span<const float> rows, uint32_t first) noexcept {
  const size_t hidden = architecture_.hidden;
  const Range range = range_of(portion);
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
  const Range range = range_of(portion);
  const std::span<float> part{x.data() + range.begin * hidden, (range.end - range.begin) * hidden};
  if (keep) return runner_->run(block, layer, part, sink);
  scratch_.assign(part.begin(), part.end());
  return runner_->run(block, layer, scratch_, sink);
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

Status ForwardPass::begin_head(InputSink* sink) {
  normalize({architecture_.norm_epsilon, architecture_.norm_plus_one}, final_norm_, x_.data(), tokens_.size(),
            x_.data());
  if (sink != nullptr) TRY_VOID(sink->accept(architecture_.layers, LinearInput::head, x_, architecture_.hidden));
  std::vector<int32_t> targets(tokens_.size(), -1);
  for (size_t i = 0; i + 1 < tokens_.size(); ++i)
    if ((i + 1) % length_ != 0) targets[i] = tokens_[i + 1];
  loss_ = std::make_unique<TokenLoss>(std::move(targets));
  next_.assign(sequences(), {});
  return {};
}

std::span<float> ForwardPass::logits(size_t portion, std::span<const float> rows) {
  const Range range = range_of(portion);
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
  const Range range = range_of(portion);
  const std::span<float> found = logits(portion, rows);
  for (size_t end = range.begin + length_; end <= range.end; end += length_)
    take_largest(found.subspan((end - 1 - range.begin) * width, width), width, end / length_ - 1, first);
  loss_->add(found, width, range.begin, first);
}

double ForwardPass::loss_of(size_t sequence) const noexcept {
  double sum = 0;
  for (size_t i = 0; i + 1 < length_; ++i) sum += loss_->loss(sequence * length_ + i);
  return sum;
}

uint64_t ForwardPass::bytes_per_token(const Architecture& a) noexcept {
  constexpr uint64_t kTokenAndLoss = 4 + 4 + 4 + 4 + 8;
  return uint64_t{a.hidden} * sizeof(float) + kTokenAndLoss;
}

uint64_t ForwardPass::working_bytes(const Architecture& a, size_t length) noexcept {
  const uint64_t tokens = sequences_per_portion(length) * length;
  const uint64_t wide = uint64_t{a.hidden} + 2 * uint64_t{a.query_columns()} + 2 * uint64_t{a.key_columns()} +
                        2 * uint64_t{a.intermediate};
  return tokens * wide * sizeof(float);
}

}  // namespace wasmquant::model
