#include "gguf_conversion/tensors/expert_stacks.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"

namespace wasmquant::conversion {

Status ExpertStacks::finish(std::span<const SourceTensor> tensors, List<ConvertedTensor>& out) const {
  const List<uint32_t> order = sorted_order(found_.size(), [&](uint32_t a, uint32_t b) {
    const int names = found_[a].name.compare(found_[b].name);
    return names != 0 ? names < 0 : found_[a].number < found_[b].number;
  });
  for (const uint32_t i : order) {
    const Expert& expert = found_[i];
    const SourceTensor& from = tensors[expert.source];
    const bool is_next = !out.empty() && out.back().name == expert.name;
    const uint64_t number = is_next ? out.back().rows.size() : 0;
    if (expert.number > number)
      return error_at(ErrorCode::tensor_missing, from.name, "the experts before it end with {} of them", number);
    if (expert.number < number)
      return error_at(ErrorCode::tensor_duplicate, from.name, "there is another expert with this number");
    uint64_t rows = 1;
    for (size_t axis = 0; axis + 1 < from.shape.size(); ++axis) rows *= from.shape[axis];
    if (is_next) {
      const SourceTensor& first = tensors[out.back().source];
      if (!std::equal(from.shape.begin(), from.shape.end(), first.shape.begin(), first.shape.end()))
        return error_at(ErrorCode::shape_mismatch, from.name, "has another shape than {}", first.name);
      ++out.back().shape[0];
    } else {
      ConvertedTensor& to = out.emplace_back();
      to.source = expert.source;
      to.name = expert.name;
      to.half = expert.half;
      to.shape.assign(from.shape.begin(), from.shape.end());
      to.shape.insert(to.shape.begin(), 1);
    }
    out.back().rows.push_back({expert.source, 0, rows});
  }
  return {};
}

}  // namespace wasmquant::conversion
