// Groups of layers by name and by config, and the weights that are read to observe a shared scale.
#include "pipeline/task/shared_scales.h"

#include <algorithm>
#include <utility>

#include "core/message.h"
#include "core/order.h"
#include "families/module_path.h"
#include "pipeline/task/tensor_scales.h"
#include "runtimes/vllm/joined_layers.h"
#include "runtimes/vllm/texts.h"

namespace wasmquant {
namespace {

// vLLM takes the largest fp8 scale of joined weights too, but rounds their codes again.
bool has_second_scale(const WeightLayout& layout) {
  return (layout.spec.scale_format == ScaleFormat::e4m3 && !layout.is_stored) ||
         (layout.stages.size() == 2 && layout.stages[1].is_scale_quant);
}

bool has_scale_per_tensor(const WeightLayout& layout) {
  if (has_second_scale(layout)) return true;
  return layout.all_stages().front().qscheme == QScheme::per_tensor && layout.spec.scale_format == ScaleFormat::float32;
}

// The group's name for a layer of the config's groups: its module and the group's number. Of several groups the last
// counts, as in AMD Quark. "" if it is in none.
std::string group_of(std::string_view layer, const List<List<std::string>>& groups) {
  const std::string_view part = families::last_component(layer);
  for (size_t i = groups.size(); i-- > 0;)
    for (const std::string& ending : groups[i])
      if (part.ends_with(ending)) return text_of("{}{}", layer.substr(0, layer.size() - part.size()), i);
  return {};
}

// What observing needs of a weight that another one shares a scale with.
std::shared_ptr<const TensorTask> observed_only(const TensorTask& task, const TileBytes& tile_bytes) {
  auto other = std::make_shared<TensorTask>();
  other->name = task.name;
  other->source = task.source;
  other->source_bytes = task.source_bytes;
  other->source_pitch = task.source_pitch;
  other->quantized = task.quantized;
  other->non_finite = task.non_finite;
  other->is_observed = true;
  WeightLayout layout;
  layout.shape = task.layout->shape;
  layout.rows = task.layout->rows;
  layout.columns = task.layout->columns;
  layout.source = task.layout->source;
  layout.source_transposed = task.layout->source_transposed;
  layout.codes = CodeStorage::rows_bytes;
  layout.granularity.axis = layout.rows * layout.columns;
  layout.granularity.block = std::max<uint64_t>(layout.granularity.axis, 1);
  other->layout = std::move(layout);
  set_tiles(*other, tile_bytes);
  return other;
}

void join_parts(const List<LayerTask>& weights, const List<uint32_t>& parts, const TileBytes& tile_bytes) {
  List<std::shared_ptr<const TensorTask>> others;
  for (const uint32_t i : parts) others.push_back(observed_only(*weights[i].task, tile_bytes));
  for (size_t i = 0; i < parts.size(); ++i) {
    TensorTask& task = *weights[parts[i]].task;
    task.is_observed = true;
    for (size_t k = 0; k < parts.size(); ++k)
      if (k != i) task.joined.push_back(others[k]);
  }
}

// Calls `use` with the indices of each group's members: two or more, with one scheme.
template <class Use>
void for_each_group(const List<LayerTask>& weights, const NameOf& group_of_weight, const Use& use) {
  const List<uint32_t> order = sorted_by_name(weights.size(), group_of_weight);
  List<uint32_t> members;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string_view group = group_of_weight(order[i]);
    if (group.empty()) continue;
    const bool is_first = members.empty();
    if (is_first || weights[members.front()].task->layout->all_stages() == weights[order[i]].task->layout->all_stages())
      members.push_back(order[i]);
    if (i + 1 < order.size() && group_of_weight(order[i + 1]) == group) continue;
    if (members.size() > 1) use(members);
    members.clear();
  }
}

Diagnostic warning_of(const LayerTask& first, const LayerTask& second) {
  return {Severity::warning, "fused-layers", first.task->name, text_of(vllm::kJoinsScales, second.layer),
          "leave shared_scale_groups out, or name q, k and v, gate and up, and q_a and kv_a in it"};
}

}  // namespace

Result<std::optional<Diagnostic>> share_scales(const List<LayerTask>& weights, const std::optional<LayerGroups>& groups,
                                               std::string_view where, bool joins, const TileBytes& tile_bytes) {
  List<std::string> asked, joined;
  for (const auto& [layer, task] : weights) {
    const bool is_named = has_scale_per_tensor(task->layout);
    asked.push_back(is_named && groups ? group_of(layer, *groups) : std::string());
    joined.push_back(is_named && has_second_scale(task->layout) ? vllm::joined_matrix(layer) : std::string());
  }
  std::optional<Error> problem;
  bool is_any = false;
  for_each_group(
      weights, [&](uint32_t i) { return std::string_view((groups ? asked : joined)[i]); },
      [&](const List<uint32_t>& members) {
        const TensorTask& first = *weights[members.front()].task;
        if (!TensorScales::can_join(first.layout)) {
          if (groups && !problem)
            problem = error_at(ErrorCode::spec_invalid, first.name,
                               "cannot share the scale of the tensor with {}: that needs a min-max observer, "
                               "and symmetric scales of scales. Change the spec, or remove the layer from "
                               "shared_scale_groups",
                               weights[members[1]].task->name);
          return;
        }
        is_any = true;
        join_parts(weights, members, tile_bytes);
      });
  if (problem) return std::move(*problem);
  std::optional<Diagnostic> remark;
  if (joins)
    for_each_group(
        weights, [&](uint32_t i) { return std::string_view(joined[i]); },
        [&](const List<uint32_t>& members) {
          for (const uint32_t i : members)
            if (!remark && weights[i].task->joined.size() + 1 < members.size())
              remark = warning_of(weights[members.front()], weights[members[1]]);
        });
  if (!remark && groups && !groups->empty() && !is_any)
    remark = {Severity::note, "no-effect", text_of("{}/shared_scale_groups", where),
              "no two weights of these groups share a scale: none of them has one for the whole tensor", ""};
  return remark;
}

}  // namespace wasmquant
