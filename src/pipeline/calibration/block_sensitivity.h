// What quantizing one linear layer of a transformer block would do to the model: how large the change of the layer's
// output is beside what the block adds, and that beside the residual stream it is added to.
//
//   begin with the block loaded;  run every portion with this as the sink;  finish;  then measure as often as wanted
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "algorithms/input_statistics.h"
#include "algorithms/output_error.h"
#include "model/linear_layers.h"
#include "pipeline/task/task.h"

namespace wasmquant {

class BlockSensitivity final : public model::InputSink {
 public:
  /// `block` outlives it and keeps its values.
  explicit BlockSensitivity(const model::BlockValues& block) noexcept : block_(block) {}

  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override;

  /// `stream_energy`: mean over tokens of the squared norm of the block's output. Errors: state-invalid when no inputs
  /// were seen, those of OutputError::of_hessian at the layer whose inputs they are.
  Status finish(double stream_energy);

  /// Relative squared error of the residual stream, estimated for the layer alone stored as `task` says:
  /// |X D^T|^2 / |X W^T|^2 of the layer (D: the change of its weight W), times the share that its half of the block,
  /// attention or feed-forward, has in the stream. The halves' outputs are those of o_proj and down_proj; an error
  /// before them is taken to pass through in proportion. Errors: those of store_changed, argument-invalid when the task
  /// is not of that tensor.
  Result<double> measure(model::Slot slot, const TensorTask& task) const;

 private:
  struct Seen {
    std::unique_ptr<InputStatistics> statistics;
    std::optional<OutputError> outputs;
  };
  /// Mean over tokens of the squared norm of X w^T, for w [rows, columns of the input].
  double energy(model::LinearInput input, std::span<const float> w) const;

  const model::BlockValues& block_;
  std::array<Seen, model::kBlockInputs> seen_;
  std::array<double, model::kLinearLayers> energies_{};  // of the layers' outputs
  double stream_energy_ = 0;
  uint32_t number_ = 0;  // of the block
};

}  // namespace wasmquant
