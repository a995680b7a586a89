// A forward pass of a batch of sequences. Contract: BoundForwardPass of web/lib/engine/forward_module.ts.
#pragma once
#include <memory>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "pipeline/forward/divergence_session.h"
#include "pipeline/forward/forward_session.h"
#include "work.h"

namespace wasmquant::bindings {

class BoundForwardPass : Counted {
 public:
  /// `options`: {"activations": "float32" | "int8" | "llama.cpp", "lengths": tokens of each sequence, "keepsStates"?, "scored"?: "all" |
  /// "second-half", "positions"?: of one sequence that is continued};
  /// `tokens`: int32 [count].
  BoundForwardPass(std::string config, std::string options, Address tokens, double count);
  std::string portions() const;
  std::string begin(uint32_t step, uint32_t slot, const BoundWork& work, uint32_t task);
  std::string reads(uint32_t tile);
  std::string load(uint32_t tile);
  std::string run(uint32_t portion);
  std::string needs(uint32_t tile) const;
  std::string keep();
  std::string run_kept(uint32_t step);
  std::string extend(int32_t token);
  std::string losses();
  /// `pooling`: "mean" or "first".
  std::string embeddings(std::string pooling);
  int32_t next_token(uint32_t sequence) const;

  /// Shared with the stages made from this pass; or the constructor's error.
  const Result<std::shared_ptr<ForwardSession>>& session() const noexcept { return session_; }

 private:
  Result<std::shared_ptr<ForwardSession>> session_;
  bool has_tensor_ = false;
  List<double> losses_;
  std::vector<float> embeddings_;
};

/// A model's predictions and a reference's: two passes of the same tokens, run up to the head.
class BoundDivergence : Counted {
 public:
  BoundDivergence(const BoundForwardPass& reference, const BoundForwardPass& model);
  std::string behind() const;
  std::string run(uint32_t portion);
  std::string positions();

 private:
  static Result<DivergenceSession> session_of(const BoundForwardPass& reference, const BoundForwardPass& model);

  Result<DivergenceSession> session_;
  List<double> values_;
};

}  // namespace wasmquant::bindings
