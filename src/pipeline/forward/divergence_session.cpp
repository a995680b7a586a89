#include "pipeline/forward/divergence_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/message.h"

namespace wasmquant {
namespace {

/// One past the last row of the head that is loaded.
size_t end_of(ForwardSession& session) noexcept {
  return session.first_row() + session.rows().size() / session.pass().architecture().hidden;
}

/// Rows [first, last) of the vocabulary, which are loaded.
std::span<const float> rows_of(ForwardSession& session, size_t first, size_t last) noexcept {
  const size_t hidden = session.pass().architecture().hidden;
  return session.rows().subspan((first - session.first_row()) * hidden, (last - first) * hidden);
}

}  // namespace

DivergenceSession::DivergenceSession(std::shared_ptr<ForwardSession> reference, std::shared_ptr<ForwardSession> model)
    : reference_(std::move(reference)), model_(std::move(model)), divergence_(model_->pass().targets()) {}

Result<DivergenceSession> DivergenceSession::of(std::shared_ptr<ForwardSession> reference,
                                                std::shared_ptr<ForwardSession> model) {
  const uint32_t expected = reference->pass().architecture().vocabulary;
  const uint32_t found = model->pass().architecture().vocabulary;
  if (expected != found)
    return error_at(ErrorCode::argument_invalid, "against",
                    "has a vocabulary of {} tokens, but the model has {}: give the model that it was made from",
                    expected, found);
  if (reference->pass().targets() != model->pass().targets())
    return error_at(ErrorCode::argument_invalid, "against", "was given other tokens");
  return DivergenceSession(std::move(reference), std::move(model));
}

void DivergenceSession::run(uint32_t portion) {
  const size_t first = std::max(reference_->first_row(), model_->first_row());
  const size_t last = std::min(end_of(*reference_), end_of(*model_));
  if (first >= last) return;
  const std::span<float> expected =
      reference_->pass().logits(portion, rows_of(*reference_, first, last), static_cast<uint32_t>(first));
  const std::span<float> found =
      model_->pass().logits(portion, rows_of(*model_, first, last), static_cast<uint32_t>(first));
  divergence_.add(expected, found, last - first, model_->pass().tokens_of(portion).first, static_cast<uint32_t>(first));
}

DivergenceSession::Behind DivergenceSession::behind() const noexcept {
  const size_t reference = end_of(*reference_), model = end_of(*model_);
  const bool is_read = std::min(reference, model) >= model_->pass().architecture().vocabulary;
  return {!is_read && reference <= model, !is_read && model <= reference};
}

Result<std::vector<model::PositionDivergence>> DivergenceSession::positions() const {
  std::vector<model::PositionDivergence> out;
  for (size_t sequence = 0; sequence < model_->pass().sequences(); ++sequence) {
    const auto [first, last] = model_->pass().scored(sequence);
    for (size_t position = first; position < last; ++position) {
      out.push_back(divergence_.at(position));
      const model::PositionDivergence& found = out.back();
      const bool is_finite = std::isfinite(found.loss), is_reference_finite = std::isfinite(found.reference_loss);
      if (!is_finite || !is_reference_finite || !std::isfinite(found.kld))
        return error_at(ErrorCode::value_not_finite, is_finite && !is_reference_finite ? "against" : "logits",
                        "are NaN or infinite in a sequence; the weights contain such values, or overflow float32");
    }
  }
  return out;
}

}  // namespace wasmquant
