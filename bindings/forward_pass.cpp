// The forward pass for JavaScript: portions, weights read into memory, losses and logits; and the comparison of two
// models' predictions.
#include "forward_pass.h"

#include <emscripten/bind.h>

#include <cmath>

#include "tile_json.h"

namespace wasmquant::bindings {
namespace {

Result<std::shared_ptr<ForwardSession>> session_of(const std::string& config, const std::string& options_text,
                                                   std::span<const int32_t> tokens) {
  TRY(document, json::parse(config, json::kPython));
  TRY(options, json::parse(options_text));
  TRY(architecture, model::read_architecture(document));
  const std::string& activations = options["activations"].as_string();
  const bool int8 = activations == "int8";
  auto session = std::make_shared<ForwardSession>(
      std::move(architecture), int8 ? model::InputPrecision::int8_per_token : model::InputPrecision::float32);
  std::vector<uint32_t> lengths;
  for (const json::Value& length : options["lengths"].items())
    lengths.push_back(static_cast<uint32_t>(length.as_integer()));
  TRY_VOID(session->pass().set_tokens(tokens, lengths, static_cast<size_t>(options["positions"].as_integer())));
  if (activations == "llama.cpp") session->multiply_as_llama_cpp();
  if (options["keepsStates"].as_bool()) session->pass().keep_states();
  if (options["scored"].as_string() == "second-half") session->pass().score_second_half();
  return session;
}

std::string no_tensor() { return fail(error_at(ErrorCode::state_invalid, "tensor", "begin() was not called")); }

}  // namespace

BoundForwardPass::BoundForwardPass(std::string config, std::string options, Address tokens, double count)
    : session_(session_of(config, options, {pointer<const int32_t>(tokens), static_cast<size_t>(count)})) {}

std::string BoundForwardPass::portions() const {
  return session_ ? ok(static_cast<uint64_t>((*session_)->pass().portions())) : fail(session_.error());
}

std::string BoundForwardPass::begin(uint32_t step, uint32_t slot, const BoundWork& work, uint32_t number) {
  if (!session_) return fail(session_.error());
  auto task = work.task(number);
  if (!task) return fail(task.error());
  const Status begun = (*session_)->begin(step, slot, std::move(*task));
  has_tensor_ = bool(begun);
  return reply(begun);
}

std::string BoundForwardPass::reads(uint32_t tile) {
  return has_tensor_ ? ok(reads_json((*session_)->reads(tile))) : no_tensor();
}

std::string BoundForwardPass::load(uint32_t tile) {
  if (!has_tensor_) return no_tensor();
  (*session_)->load(tile);
  return ok(nullptr);
}

std::string BoundForwardPass::run(uint32_t portion) {
  return has_tensor_ ? reply((*session_)->run(portion)) : no_tensor();
}

std::string BoundForwardPass::needs(uint32_t tile) const {
  return has_tensor_ ? ok((*session_)->needs(tile)) : no_tensor();
}

std::string BoundForwardPass::keep() {
  if (!has_tensor_) return no_tensor();
  (*session_)->keep();
  return ok(nullptr);
}

std::string BoundForwardPass::run_kept(uint32_t step) {
  return has_tensor_ ? reply((*session_)->run_kept(step)) : no_tensor();
}

std::string BoundForwardPass::extend(int32_t token) {
  return session_ ? reply((*session_)->pass().extend(token)) : fail(session_.error());
}

std::string BoundForwardPass::losses() {
  if (!session_) return fail(session_.error());
  const model::ForwardPass& pass = (*session_)->pass();
  losses_.clear();
  for (size_t i = 0; i < pass.sequences(); ++i) {
    losses_.push_back(pass.loss_of(i));
    if (!std::isfinite(losses_.back()))
      return fail(error_at(ErrorCode::value_not_finite, "logits",
                           "are NaN or infinite in a sequence; the weights contain such values, or overflow float32"));
  }
  json::Value out;
  out.set("pointer", address(losses_.data()));
  out.set("count", static_cast<uint64_t>(losses_.size()));
  return ok(std::move(out));
}

std::string BoundForwardPass::embeddings(std::string pooling) {
  if (!session_) return fail(session_.error());
  embeddings_ = (*session_)->pass().embeddings(pooling == "first" ? model::Pooling::first : model::Pooling::mean);
  for (const float value : embeddings_)
    if (!std::isfinite(value))
      return fail(error_at(ErrorCode::value_not_finite, "embeddings",
                           "are NaN or infinite; the weights contain such values, or overflow float32"));
  json::Value out;
  out.set("pointer", address(embeddings_.data()));
  out.set("count", static_cast<uint64_t>(embeddings_.size()));
  return ok(std::move(out));
}

int32_t BoundForwardPass::next_token(uint32_t sequence) const {
  return session_ ? (*session_)->pass().next_token(sequence) : -1;
}

BoundDivergence::BoundDivergence(const BoundForwardPass& reference, const BoundForwardPass& model)
    : session_(session_of(reference, model)) {}

Result<DivergenceSession> BoundDivergence::session_of(const BoundForwardPass& reference,
                                                      const BoundForwardPass& model) {
  if (!reference.session()) return reference.session().error();
  if (!model.session()) return model.session().error();
  return DivergenceSession::of(*reference.session(), *model.session());
}

std::string BoundDivergence::behind() const {
  if (!session_) return fail(session_.error());
  const DivergenceSession::Behind found = session_->behind();
  json::Value out;
  out.set("reference", found.reference);
  out.set("model", found.model);
  return ok(std::move(out));
}

std::string BoundDivergence::run(uint32_t portion) {
  if (!session_) return fail(session_.error());
  session_->run(portion);
  return ok(nullptr);
}

std::string BoundDivergence::positions() {
  if (!session_) return fail(session_.error());
  auto found = session_->positions();
  if (!found) return fail(found.error());
  values_.clear();
  for (const model::PositionDivergence& position : *found)
    for (const double value : {position.kld, position.loss, position.reference_loss, position.is_same_top ? 1.0 : 0.0})
      values_.push_back(value);
  json::Value out;
  out.set("pointer", address(values_.data()));
  out.set("count", static_cast<uint64_t>(values_.size()));
  return ok(std::move(out));
}

}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(forward_pass) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundForwardPass>("ForwardPass")
      .constructor<std::string, std::string, Address, double>()
      .function("portions", &BoundForwardPass::portions)
      .function("begin", &BoundForwardPass::begin)
      .function("reads", &BoundForwardPass::reads)
      .function("load", &BoundForwardPass::load)
      .function("run", &BoundForwardPass::run)
      .function("needs", &BoundForwardPass::needs)
      .function("keep", &BoundForwardPass::keep)
      .function("runKept", &BoundForwardPass::run_kept)
      .function("extend", &BoundForwardPass::extend)
      .function("losses", &BoundForwardPass::losses)
      .function("embeddings", &BoundForwardPass::embeddings)
      .function("nextToken", &BoundForwardPass::next_token);
  class_<BoundDivergence>("Divergence")
      .constructor<const BoundForwardPass&, const BoundForwardPass&>()
      .function("behind", &BoundDivergence::behind)
      .function("run", &BoundDivergence::run)
      .function("positions", &BoundDivergence::positions);
}
