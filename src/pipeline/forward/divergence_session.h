// Compares two forward passes of the same tokens at their heads. Each pass is run as forward_session.h says until its
// head; from there on only load() is called, and run() of this session on every portion after each:
//   load the first tile of both heads
//   until both are read:  run(portion) for every portion, then load the next tile of each side that behind() names
#pragma once
#include <memory>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "model/logit_divergence.h"
#include "pipeline/forward/forward_session.h"

namespace wasmquant {

/// The divergence of a model from a reference.
class DivergenceSession {
 public:
  /// Errors: argument-invalid if their vocabularies or tokens are not the same.
  static Result<DivergenceSession> of(std::shared_ptr<ForwardSession> reference, std::shared_ptr<ForwardSession> model);

  /// Adds the rows of the vocabulary that both sides have loaded and that were not added yet.
  void run(uint32_t portion);

  struct Behind {
    bool reference = false, model = false;
  };
  /// The sides whose rows end first, both where they end at the same row; none after the last row.
  Behind behind() const noexcept;

  /// Of all scored positions in order, once the vocabulary is read. Errors: value-not-finite.
  Result<std::vector<model::PositionDivergence>> positions() const;

 private:
  DivergenceSession(std::shared_ptr<ForwardSession> reference, std::shared_ptr<ForwardSession> model);

  std::shared_ptr<ForwardSession> reference_, model_;
  model::LogitDivergence divergence_;
};

}  // namespace wasmquant
