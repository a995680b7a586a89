// Estimates what quantizing one linear layer of a transformer block does to the model: the relative change of the
// layer's output, scaled by the block's share of the residual stream.
//   begin with the block loaded;  run every portion with this as the sink;  finish;  then measure any number of times
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "algorithms/input_statistics.h"
#include "algorithms/output_error.h"
#include "model/linear_layers.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// One block's inputs and the energy of its layers' outputs, for measuring any number of candidates.
class BlockSensitivity final : public model::InputSink {
 public:
  /// `block` must outlive this object and keep its values.
  explicit BlockSensitivity(const model::BlockValues& block) noexcept : block_(block) {}

  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override;

  /// `stream_energy`: mean over tokens of the squared norm of the block's output. Errors: state-invalid if no inputs
  /// were seen, those of OutputError::of_hessian naming the layer.
  Status finish(double stream_energy);

  /// Relative squared error of the residual stream if only this layer is stored as `task` says: |X D^T|^2 / |X W^T|^2
  /// (D: the change of weight W), times the share of its half of the block (attention or feed-forward) in the stream.
  /// o_proj and down_proj make the halves' outputs; errors before them are assumed to propagate in proportion. Errors:
  /// those of store_modified, argument-invalid if the task belongs to another tensor.
  Result<double> measure(model::Slot slot, const TensorTask& task) const;

 private:
  struct Seen {
    std::unique_ptr<InputStatistics> statistics;
    std::optional<OutputError> outputs;
  };
  /// Mean over tokens of the squared norm of X w^T, for w [rows, input columns].
  double energy(model::LinearInput input, std::span<const float> w) const;

  const model::BlockValues& block_;
  std::array<Seen, model::kBlockInputs> seen_;
  std::array<double, model::kLinearLayers> energies_{};  // of the layers' outputs
  double stream_energy_ = 0;
  uint32_t number_ = 0;  // block number
};

}  // namespace wasmquant
