#include "pipeline/checkpoint_plan/output_stacks.h"

#include <algorithm>
#include <tuple>

#include "core/order.h"

namespace wasmquant {
namespace {

constexpr uint32_t kAbsent = UINT32_MAX;

// A weight or bias whose layer is in a stack. `name`: of the stack's tensor, were it in one piece.
struct Member {
  std::string name;
  runtimes::StackPlace place;
  uint32_t tensor;
};

Status check(const Plan& plan, const OutputStack& stack) {
  const auto missing = std::find(stack.tensors.begin(), stack.tensors.end(), kAbsent);
  if (missing != stack.tensors.end())
    return error_at(ErrorCode::tensor_missing, stack.layer, "expert {} is not in the model, which has {}",
                    static_cast<uint64_t>(missing - stack.tensors.begin()), stack.tensors.size());
  const PlannedTensor& first = plan.tensors[stack.tensors.front()];
  for (const uint32_t tensor : stack.tensors)
    if (const PlannedTensor& other = plan.tensors[tensor]; other.outputs() != first.outputs())
      return error_at(ErrorCode::format_unsupported, other.task.name,
                      "is stored in another way than {}: the {} format has all experts of a layer in one tensor. Give "
                      "them one config",
                      first.task.name, plan.format);
  return {};
}

}  // namespace

Status stack_outputs(Plan& plan, const families::ModelFamily& family, const runtimes::Loader& loader) {
  List<Member> members;
  for (uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const PlannedTensor& planned = plan.tensors[tensor];
    auto place = loader.stack_of(family, planned.weight.layer);
    if (!place) continue;
    std::string name = place->layer + planned.task.name.substr(planned.weight.layer.size());
    members.push_back({std::move(name), std::move(*place), tensor});
  }
  const auto name_of = [&](uint32_t i) -> std::string_view { return members[i].name; };
  std::string_view last;
  for (const uint32_t i : sorted_by_name(members.size(), name_of)) {
    const Member& member = members[i];
    if (member.name != last) plan.stacks.push_back({member.place.layer, {}});
    last = member.name;
    List<uint32_t>& tensors = plan.stacks.back().tensors;
    while (tensors.size() <= member.place.index) tensors.push_back(kAbsent);
    tensors[member.place.index] = member.tensor;
    plan.tensors[member.tensor].stack = static_cast<uint32_t>(plan.stacks.size());
  }
  for (const OutputStack& stack : plan.stacks) TRY_VOID(check(plan, stack));
  return {};
}

void sort_work(Plan& plan) {
  const auto place_of = [&](uint32_t work) {
    const Location& first = plan.task_of(work).components.front();
    return std::tuple(first.file, first.offset);
  };
  List<uint32_t> sorted;
  sorted.reserve(plan.work.size());
  for (const uint32_t i : sorted_order(plan.work.size(), [&](uint32_t one, uint32_t other) {
         return place_of(plan.work[one]) < place_of(plan.work[other]);
       }))
    sorted.push_back(plan.work[i]);
  plan.work = std::move(sorted);
}

}  // namespace wasmquant
