#include "model_functions.h"

#include <cmath>

#include "pipeline/forward_plan.h"

namespace wasmquant::bindings {

std::string forward_plan(const BoundModelIndex& model, std::string config, std::string options_text) {
  const auto options = json::parse(options_text);
  if (!options) return fail(options.error());
  const auto plan = plan_forward(model.index(), config, tile_bytes_of(*options));
  if (!plan) return fail(plan.error());
  return ok(forward_plan_json(*plan, static_cast<size_t>(std::max<int64_t>((*options)["length"].as_integer(), 1))));
}

BoundForwardPass::BoundForwardPass(std::string config, std::string options_text) {
  const auto document = json::parse(config), options = json::parse(options_text);
  if (!document || !options) {
    error_ = document ? options.error() : document.error();
    return;
  }
  auto architecture = model::read_architecture(*document);
  if (!architecture) {
    error_ = std::move(architecture.error());
    return;
  }
  const bool int8 = (*options)["activations"].as_string() == "int8";
  session_ = std::make_unique<ForwardSession>(
      std::move(*architecture), int8 ? model::InputPrecision::int8_per_token : model::InputPrecision::float32);
}

std::string BoundForwardPass::set_tokens(Address tokens, double count, uint32_t length) {
  if (!session_) return fail(error_);
  const Status status =
      session_->pass().set_tokens({pointer<const int32_t>(tokens), static_cast<size_t>(count)}, length);
  if (!status) return fail(status.error());
  json::Value out;
  out.set("portions", static_cast<uint64_t>(session_->pass().portions()));
  return ok(std::move(out));
}

std::string BoundForwardPass::begin(uint32_t step, uint32_t slot, std::string task) {
  return session_ ? reply(session_->begin(step, slot, task)) : fail(error_);
}

std::string BoundForwardPass::reads(uint32_t tile) {
  return session_ ? ok(reads_json(session_->reads(tile))) : fail(error_);
}

std::string BoundForwardPass::load(uint32_t tile) {
  if (!session_) return fail(error_);
  session_->load(tile);
  return ok(nullptr);
}

std::string BoundForwardPass::run(uint32_t portion) { return session_ ? reply(session_->run(portion)) : fail(error_); }

std::string BoundForwardPass::losses() {
  if (!session_) return fail(error_);
  losses_.clear();
  for (size_t i = 0; i < session_->pass().sequences(); ++i) {
    losses_.push_back(session_->pass().loss_of(i));
    if (!std::isfinite(losses_.back()))
      return fail(error_at(ErrorCode::value_not_finite, "logits",
                           "are NaN or infinite in a sequence; the weights hold such values, or overflow float32"));
  }
  json::Value out;
  out.set("pointer", address(losses_.data()));
  out.set("count", static_cast<uint64_t>(losses_.size()));
  return ok(std::move(out));
}

}  // namespace wasmquant::bindings
