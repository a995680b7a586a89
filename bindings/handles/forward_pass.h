// A forward pass of a batch of sequences, and what is measured on passes. Contracts: BoundForwardPass, BoundDivergence
// and BoundSensitivityProbe of web/lib/engine/forward_module.ts.
#pragma once
#include "handles/work.h"
#include "pipeline/calibration/block_sensitivity.h"
#include "pipeline/forward/divergence_session.h"
#include "pipeline/forward/forward_session.h"

namespace wasmquant::bindings {

class BoundForwardPass : Counted {
 public:
  /// `architecture`: bytes of packed_architecture. `options`: {"activations": "float32" | "int8" | "llama.cpp", "lengths": tokens of each sequence,
  /// "keepsStates"?, "scored"?: "all" | "second-half", "positions"?: of one sequence that is continued}; `tokens`: int32 [count].
  /// Errors: json-invalid, those of read_packed_architecture and ForwardPass::set_tokens.
  static Made<BoundForwardPass> make(Address architecture, double bytes, const std::string& options, Address tokens,
                                     double count);

  uint32_t portions() const { return static_cast<uint32_t>(session_->pass().portions()); }
  /// Errors: those of BoundWork::task and ForwardSession::begin.
  Status begin(uint32_t step, uint32_t slot, const BoundWork& work, uint32_t task);
  /// Of the tensor begun last; without one, these fail: state-invalid.
  Result<List<TileRead>> reads(uint32_t tile);
  Status load(uint32_t tile);
  /// Errors: those of BoundWork::task.
  Status replace(uint32_t step, uint32_t slot, const BoundWork& work, uint32_t task);
  Status run(uint32_t portion);
  Result<bool> needs(uint32_t tile) const;
  Status keep();
  Status run_kept(uint32_t step);
  /// Errors: those of ForwardPass::extend.
  Status extend(int32_t token) { return session_->pass().extend(token); }
  /// Error: value-not-finite.
  Result<std::span<const double>> losses();
  /// `pooling`: "mean" or "first". Error: value-not-finite.
  Result<std::span<const float>> embeddings(const std::string& pooling);
  int32_t next_token(uint32_t sequence) const { return session_->pass().next_token(sequence); }

  /// Shared with what is made of this pass.
  const std::shared_ptr<ForwardSession>& session() const noexcept { return session_; }

 private:
  explicit BoundForwardPass(std::shared_ptr<ForwardSession> session) : session_(std::move(session)) {}

  std::shared_ptr<ForwardSession> session_;
  bool has_tensor_ = false;
  std::vector<double> losses_;
  std::vector<float> embeddings_;
};

/// A model's predictions and a reference's: two passes of the same tokens, run up to the head.
class BoundDivergence : Counted {
 public:
  /// Errors: those of DivergenceSession::of.
  static Made<BoundDivergence> make(const BoundForwardPass& reference, const BoundForwardPass& model);

  json::Value behind() const;
  Status run(uint32_t portion);
  /// Errors: those of DivergenceSession::positions.
  Result<std::span<const double>> positions();

 private:
  explicit BoundDivergence(DivergenceSession session) : session_(std::move(session)) {}

  DivergenceSession session_;
  std::vector<double> values_;
};

/// What quantizing each layer of the loaded block does to the residual stream.
class BoundSensitivityProbe : Counted {
 public:
  explicit BoundSensitivityProbe(const BoundForwardPass& pass)
      : session_(pass.session()), sensitivity_(session_->pass().block()) {}

  /// Errors: those of ForwardSession::run.
  Status run(uint32_t portion);
  /// Errors: those of BlockSensitivity and BoundWork::task.
  Result<double> measure(uint32_t slot, const BoundWork& work, uint32_t task);

 private:
  std::shared_ptr<ForwardSession> session_;
  BlockSensitivity sensitivity_;
  bool is_finished_ = false;
};

}  // namespace wasmquant::bindings
