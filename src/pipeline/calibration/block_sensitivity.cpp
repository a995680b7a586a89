#include "pipeline/calibration/block_sensitivity.h"

#include "core/message.h"
#include "pipeline/session/store_modified_weight.h"

namespace wasmquant {

using model::LinearInput;
using model::LinearLayer;
using model::Slot;

namespace {

Error at(uint32_t block, LinearInput input, Error error) {
  constexpr const char* kInputs[] = {"attention",    "queries' vectors", "keys' vectors", "encoded",
                                     "state output", "attention output", "feed-forward",  "feed-forward output"};
  if (error.where.empty()) error.where = text_of("layers.{}.{}", block, kInputs[static_cast<size_t>(input)]);
  return error;
}

}  // namespace

Status BlockSensitivity::accept(uint32_t block, LinearInput input, std::span<const float> x, size_t columns) {
  if (input == LinearInput::head) return {};
  number_ = block;
  auto& statistics = seen_[static_cast<size_t>(input)].statistics;
  if (!statistics) statistics = std::make_unique<InputStatistics>(columns, true);
  if (Status added = statistics->add(x); !added) return at(block, input, std::move(added.error()));
  return {};
}

Status BlockSensitivity::finish(double stream_energy) {
  stream_energy_ = stream_energy;
  for (Seen& seen : seen_) {
    if (!seen.statistics) continue;  // an input that the block lacks
    const size_t columns = seen.statistics->largest().size();
    TRY(hessian, seen.statistics->finish_hessian());
    seen.statistics.reset();
    auto outputs = OutputError::of_hessian(std::move(hessian), columns);
    if (!outputs) return at(number_, static_cast<LinearInput>(&seen - seen_.data()), std::move(outputs.error()));
    seen.outputs.emplace(std::move(*outputs));
  }
  for (size_t i = 0; i < energies_.size(); ++i) {
    const LinearLayer& layer = model::linear_layers()[i];
    if (block_[layer.weight].empty()) continue;
    if (!seen_[static_cast<size_t>(layer.reads)].outputs)
      return error_at(ErrorCode::state_invalid, "calibration", "no inputs were seen");
    energies_[i] = energy(layer.reads, block_[layer.weight]);
  }
  return {};
}

double BlockSensitivity::energy(LinearInput input, std::span<const float> w) const {
  const OutputError& outputs = *seen_[static_cast<size_t>(input)].outputs;
  std::vector<double> sums(w.size() / outputs.columns());
  outputs.sum_squares({w.data(), outputs.columns()}, 0, outputs.columns(), sums);
  double sum = 0;
  for (const double row : sums) sum += row;
  return sum / 2;  // the Hessian is twice the mean over tokens
}

Result<double> BlockSensitivity::measure(Slot slot, const TensorTask& task) const {
  const auto number = static_cast<size_t>(slot);
  std::span<const float> weight;
  if (number < energies_.size()) weight = block_[slot];
  if (task.is_copy || task.layout->components.empty() || task.layout->rows * task.layout->columns != weight.size() ||
      weight.empty())
    return error_at(ErrorCode::argument_invalid, task.name, "is not a quantized linear layer of the block");
  const LinearInput input = model::linear_layers()[number].reads;
  TRY(stored, store_modified(task, weight, nullptr, weight));
  for (size_t i = 0; i < weight.size(); ++i) stored.values[i] -= weight[i];
  const double noise = energy(input, stored.values);
  if (noise == 0) return 0.0;
  const Slot last = input <= LinearInput::attention_output      ? Slot::o
                    : input <= LinearInput::feed_forward_output ? Slot::down
                                                                : Slot::layer_out;
  const double half = energies_[static_cast<size_t>(last)];
  return noise / energies_[number] * half / stream_energy_;
}

}  // namespace wasmquant
