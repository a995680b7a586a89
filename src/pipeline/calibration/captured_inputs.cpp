#include "pipeline/calibration/captured_inputs.h"

#include "model/linear_layers.h"

namespace wasmquant {
namespace {

using model::LinearInput;

}  // namespace

size_t CapturedInputs::columns_of(LinearInput input) const noexcept {
  return model::input_columns(calibration_.architecture(), input);
}

Status CapturedInputs::accept(uint32_t, LinearInput input, std::span<const float> x, size_t) {
  if (input != LinearInput::head && calibration_.captures(input))
    inputs_[static_cast<size_t>(input)].assign(x.begin(), x.end());
  return {};
}

void CapturedInputs::clear() noexcept {
  for (std::vector<float>& input : inputs_) input.clear();
}

void CapturedInputs::expect(const json::Array& bytes) {
  size_t next = 0;
  for (size_t i = 0; i < inputs_.size() && next < bytes.size(); ++i)
    if (calibration_.captures(static_cast<LinearInput>(i)))
      inputs_[i].resize(static_cast<size_t>(bytes[next++].as_integer()) / sizeof(float));
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
    if (calibration_.captures(input) && !inputs_[i].empty())
      TRY_VOID(calibration_.accept(0, input, inputs_[i], columns_of(input)));
  }
  return {};
}

}  // namespace wasmquant
