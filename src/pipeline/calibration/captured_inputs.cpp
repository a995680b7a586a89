#include "pipeline/calibration/captured_inputs.h"

namespace wasmquant {
namespace {

using model::LinearInput;

}  // namespace

size_t CapturedInputs::columns_of(LinearInput input) const noexcept {
  if (input == LinearInput::attention_output) return architecture_.query_columns();
  return input == LinearInput::feed_forward_output ? architecture_.intermediate : architecture_.hidden;
}

Status CapturedInputs::accept(uint32_t, LinearInput input, std::span<const float> x, size_t) {
  if (input != LinearInput::head && calibration_.captures(input))
    inputs_[static_cast<size_t>(input)].assign(x.begin(), x.end());
  return {};
}

void CapturedInputs::expect(uint32_t tokens) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto input = static_cast<LinearInput>(i);
    if (calibration_.captures(input)) inputs_[i].resize(tokens * columns_of(input));
  }
}

List<std::span<float>> CapturedInputs::matrices() noexcept {
  List<std::span<float>> out;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (calibration_.captures(static_cast<LinearInput>(i))) out.push_back(inputs_[i]);
  return out;
}

Status CapturedInputs::show() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto input = static_cast<LinearInput>(i);
    if (calibration_.captures(input)) TRY_VOID(calibration_.accept(0, input, inputs_[i], columns_of(input)));
  }
  return {};
}

}  // namespace wasmquant
