// The forward pass for JavaScript: tensors loaded tile by tile, portions, losses; and what is measured on passes.
#include "handles/forward_pass.h"

#include <cmath>

#include "core/message.h"
#include "pipeline/forward/packed_architecture.h"

namespace wasmquant::bindings {
namespace {

Status no_tensor() { return error_at(ErrorCode::state_invalid, "tensor", "begin() was not called"); }

}  // namespace

Made<BoundForwardPass> BoundForwardPass::make(Address packed, double bytes, const std::string& options_text,
                                              Address tokens, double count) {
  TRY(options, json::parse(options_text));
  TRY(architecture, read_packed_architecture({pointer<const char>(packed), static_cast<size_t>(bytes)}));
  const std::string& activations = options["activations"].as_string();
  const bool int8 = activations == "int8";
  auto session = std::make_shared<ForwardSession>(
      std::move(architecture), int8 ? model::InputPrecision::int8_per_token : model::InputPrecision::float32);
  std::vector<uint32_t> lengths;
  for (const json::Value& length : options["lengths"].items())
    lengths.push_back(static_cast<uint32_t>(length.as_integer()));
  TRY_VOID(session->pass().set_tokens(values_at<int32_t>(tokens, count), lengths,
                                      static_cast<size_t>(options["positions"].as_integer())));
  if (activations == "gguf") session->multiply_as_llama_cpp();
  if (options["keepsStates"].as_bool()) session->pass().keep_states();
  if (options["scored"].as_string() == "second-half") session->pass().score_second_half();
  return std::unique_ptr<BoundForwardPass>(new BoundForwardPass(std::move(session)));
}

Status BoundForwardPass::begin(uint32_t step, uint32_t slot, const BoundWork& work, uint32_t number) {
  TRY(task, work.task(number));
  Status begun = session_->begin(step, slot, std::move(task));
  has_tensor_ = bool(begun);
  return begun;
}

Result<List<TileRead>> BoundForwardPass::reads(uint32_t tile) {
  if (!has_tensor_) return no_tensor().error();
  return session_->reads(tile);
}

Status BoundForwardPass::load(uint32_t tile) {
  if (!has_tensor_) return no_tensor();
  return session_->load(tile);
}

Status BoundForwardPass::replace(uint32_t step, uint32_t slot, const BoundWork& work, uint32_t number) {
  TRY(task, work.task(number));
  session_->replace(step, slot, std::move(task));
  return {};
}

Status BoundForwardPass::run(uint32_t portion) { return has_tensor_ ? session_->run(portion) : no_tensor(); }

Result<bool> BoundForwardPass::needs(uint32_t tile) const {
  if (!has_tensor_) return no_tensor().error();
  return session_->needs(tile);
}

Status BoundForwardPass::keep() {
  if (!has_tensor_) return no_tensor();
  session_->keep();
  return {};
}

Status BoundForwardPass::run_kept(uint32_t step) { return has_tensor_ ? session_->run_kept(step) : no_tensor(); }

Result<std::span<const double>> BoundForwardPass::losses() {
  const model::ForwardPass& pass = session_->pass();
  losses_.clear();
  for (size_t i = 0; i < pass.sequences(); ++i) {
    losses_.push_back(pass.loss_of(i));
    if (!std::isfinite(losses_.back()))
      return error_at(ErrorCode::value_not_finite, "logits",
                      "are NaN or infinite in a sequence; the weights contain such values, or overflow float32");
  }
  return std::span<const double>(losses_);
}

Result<std::span<const float>> BoundForwardPass::embeddings(const std::string& pooling) {
  embeddings_ = session_->pass().embeddings(pooling == "first"  ? model::Pooling::first
                                            : pooling == "last" ? model::Pooling::last
                                                                : model::Pooling::mean);
  for (const float value : embeddings_)
    if (!std::isfinite(value))
      return error_at(ErrorCode::value_not_finite, "embeddings",
                      "are NaN or infinite; the weights contain such values, or overflow float32");
  return std::span<const float>(embeddings_);
}

Made<BoundDivergence> BoundDivergence::make(const BoundForwardPass& reference, const BoundForwardPass& model) {
  TRY(session, DivergenceSession::of(reference.session(), model.session()));
  return std::unique_ptr<BoundDivergence>(new BoundDivergence(std::move(session)));
}

json::Value BoundDivergence::behind() const {
  const DivergenceSession::Behind found = session_.behind();
  json::Value out;
  out.set("reference", found.reference);
  out.set("model", found.model);
  return out;
}

Status BoundDivergence::run(uint32_t portion) {
  session_.run(portion);
  return {};
}

Result<std::span<const double>> BoundDivergence::positions() {
  TRY(found, session_.positions());
  values_.clear();
  for (const model::PositionDivergence& position : found)
    for (const double value : {position.kld, position.loss, position.reference_loss, position.is_same_top ? 1.0 : 0.0})
      values_.push_back(value);
  return std::span<const double>(values_);
}

Status BoundSensitivityProbe::run(uint32_t portion) {
  session_->set_sink(&sensitivity_);
  Status status = session_->run(portion);
  session_->set_sink(nullptr);
  return status;
}

Result<double> BoundSensitivityProbe::measure(uint32_t slot, const BoundWork& work, uint32_t number) {
  if (!is_finished_) TRY_VOID(sensitivity_.finish(session_->pass().stream_energy()));
  is_finished_ = true;
  TRY(task, work.task(number));
  TRY_VOID(session_->restore_changes(slot, task));
  return sensitivity_.measure(static_cast<model::Slot>(slot), task);
}

}  // namespace wasmquant::bindings
