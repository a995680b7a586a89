#include "pipeline/forward/block_tensors.h"

#include "core/message.h"
#include "model/block_weights.h"
#include "model/pass_slots.h"

namespace wasmquant {
namespace {

using model::ModelPart;

/// Which of an expert's three matrices.
uint32_t part_of(const model::BlockWeight& weight) noexcept {
  return static_cast<uint32_t>(weight.slot) - static_cast<uint32_t>(model::Slot::gate);
}

// Matrices of one expert in tensors of all.
Status add_fused_expert(StepTensors& tensors, ForwardStep& step, const model::Architecture& a, uint32_t expert) {
  const uint64_t experts = a.routing.experts, wide = a.routing.width, hidden = a.hidden, size = wide * hidden;
  const uint32_t slot = kExpertSlots + 3 * expert;
  const auto name = [&](ModelPart part) { return text_of("{}.{}", step.name, a.names.of(part)); };
  if (a.routing.gate_limit > 0) {
    TRY_VOID(tensors.add_one_of(step, slot, name(ModelPart::experts_gate_up), {experts, hidden, 2 * wide}, expert));
    TRY_VOID(tensors.add_one_of(step, slot + 2, name(ModelPart::experts_down), {experts, wide, hidden}, expert));
    step.tensors.back().is_streamed = true;
    return {};
  }
  if (a.routing.is_input_major) {
    for (const uint32_t half : {0u, 1u})
      TRY_VOID(tensors.add_turned_slice(step, slot + half, name(ModelPart::experts_gate_up),
                                        {experts, hidden, 2 * wide}, expert, half * wide, wide));
    TRY_VOID(tensors.add_turned_slice(step, slot + 2, name(ModelPart::experts_down), {experts, wide, hidden}, expert, 0,
                                      hidden));
    step.tensors.back().is_streamed = true;
    return {};
  }
  for (const uint32_t half : {0u, 1u})
    TRY_VOID(tensors.add_slice(step, slot + half, name(ModelPart::experts_gate_up), {experts, 2 * wide, hidden},
                               (2 * expert + half) * size, wide, hidden));
  TRY_VOID(tensors.add_slice(step, slot + 2, name(ModelPart::experts_down), {experts, hidden, wide}, expert * size,
                             hidden, wide));
  step.tensors.back().is_streamed = true;
  return {};
}

}  // namespace

Status add_block(StepTensors& tensors, ForwardStep& step, const model::Architecture& a, uint32_t layer) {
  for (const model::BlockWeight& weight : model::block_weights(a, layer)) {
    const auto slot = static_cast<uint32_t>(weight.slot);
    if (weight.is_plain && tensors.is_gguf()) return StepTensors::is_arranged(text_of("{}.{}", step.name, weight.name));
    if (weight.is_plain) {
      std::vector<uint64_t> shape = {weight.rows, weight.columns};
      if (weight.slot == model::Slot::convolution) shape.insert(shape.begin() + 1, 1);
      TRY_VOID(tensors.add_slice(step, slot, text_of("{}.{}", step.name, weight.name), shape, 0, weight.rows,
                                 weight.columns));
    } else if (weight.rows == 0)
      TRY_VOID(tensors.add_vector(step, slot, text_of("{}.{}", step.name, weight.name), weight.columns));
    else
      TRY_VOID(tensors.add_matrix(step, slot, text_of("{}.{}", step.name, std::string(without_weight(weight.name))),
                                  "Linear", a.is_transposed ? weight.columns : weight.rows,
                                  a.is_transposed ? weight.rows : weight.columns, false));
  }
  return {};
}

Status add_experts(StepTensors& tensors, ForwardStep& step, const model::Architecture& a) {
  step.tensors.back().is_streamed = true;  // the router
  const uint64_t others = step.float_bytes;
  const std::string fused = text_of("{}.{}", step.name, a.names.of(ModelPart::experts_gate_up));
  const bool is_fused =
      a.routing.gate_limit > 0 || (a.names.has(ModelPart::experts_gate_up) && tensors.has_tensor(fused));
  // GGUF files may have gates and ups of all experts in one tensor.
  if (const std::string& gate = a.names.of(ModelPart::expert_gate); tensors.is_gguf() && !gate.empty()) {
    const std::string first = model::block_weights(model::expert_of(a, 0)).front().name;
    if (!is_fused && !tensors.has_layer(text_of("{}.{}", step.name, without_weight(first))))
      return StepTensors::is_arranged(fused);
  }
  for (uint32_t expert = 0; expert < a.routing.experts; ++expert) {
    step.float_bytes = others;
    if (is_fused) {
      TRY_VOID(add_fused_expert(tensors, step, a, expert));
      continue;
    }
    for (const model::BlockWeight& weight : model::block_weights(model::expert_of(a, expert)))
      TRY_VOID(tensors.add_matrix(step, kExpertSlots + 3 * expert + part_of(weight),
                                  text_of("{}.{}", step.name, std::string(without_weight(weight.name))), "Linear",
                                  weight.rows, weight.columns, false));
    step.tensors.back().is_streamed = true;
  }
  const auto name_of = [&](uint32_t expert, uint32_t part) {
    for (const model::BlockWeight& weight : model::block_weights(model::expert_of(a, expert)))
      if (part_of(weight) == part) return text_of("{}.{}", step.name, weight.name);
    return std::string();
  };
  const bool alternates = a.routing.gate_limit > 0;
  for (ForwardTensor& tensor : step.tensors) {
    if (tensor.slot < kExpertSlots || !(alternates || a.names.has(ModelPart::expert_up))) continue;
    const uint32_t number = tensor.slot - kExpertSlots, part = number % 3;
    if (alternates) {
      tensor.name = name_of(number / 3, part);
      tensor.stack =
          text_of("{}.{}", step.name, a.names.of(part == 2 ? ModelPart::experts_down : ModelPart::experts_gate_up));
      tensor.alternates = part == 0;
      continue;
    }
    tensor.name = name_of(number / 3, part);
    tensor.stack = is_fused || tensors.is_gguf() ? tensor.task.name : name_of(0, part);
  }
  step.kept_bytes = kNeverKept;
  return {};
}

}  // namespace wasmquant
