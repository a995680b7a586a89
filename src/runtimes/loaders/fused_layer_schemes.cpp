#include "runtimes/loaders/fused_layer_schemes.h"

#include <algorithm>
#include <numeric>

#include "core/order.h"
#include "runtimes/vllm/joined_layers.h"

namespace wasmquant {
namespace {

bool have_one_scheme(const LayerPlan& a, const LayerPlan& b) {
  if (keeps_weight(a) || keeps_weight(b)) return keeps_weight(a) == keeps_weight(b);
  return a.weight == b.weight && a.inputs == b.inputs &&
         (a.outputs == b.outputs || a.caches_outputs || b.caches_outputs);
}

}  // namespace

bool FusedLayerSchemes::update(const List<LayerPlan>& layers) {
  grew_ = false;
  warning_.reset();
  List<std::string> joined;
  joined.reserve(layers.size());
  for (const LayerPlan& layer : layers) joined.push_back(vllm::joined_layer(layer.layer));
  const auto name_of = [&](uint32_t i) { return std::string_view(joined[i]); };
  List<uint32_t> parts;
  const List<uint32_t> order = sorted_by_name(layers.size(), name_of);
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string_view module = name_of(order[i]);
    if (module.empty()) continue;
    parts.push_back(order[i]);
    if (i + 1 < order.size() && name_of(order[i + 1]) == module) continue;
    compare(layers, module, parts);
    parts.clear();
  }
  return grew_;
}

// `parts`: indices of the layers that are joined.
void FusedLayerSchemes::compare(const List<LayerPlan>& layers, std::string_view module, const List<uint32_t>& parts) {
  const LayerPlan& first = layers[parts.front()];
  const LayerPlan *left = nullptr, *other = nullptr;
  uint64_t axis = 0;
  bool is_requested = false;
  for (const uint32_t i : parts) {
    const LayerPlan& part = layers[i];
    is_requested |= part.is_requested;
    axis = std::gcd(axis, part.columns);
    if (left == nullptr && keeps_weight(part)) left = &part;
    if (other == nullptr && !have_one_scheme(first, part)) other = &part;
  }
  if (other == nullptr) return;
  const size_t place = place_of_module(module);
  const bool is_known = place < shares_.size() && shares_[place].module == module;
  if (left == nullptr && !is_known) {  // groups that fell back to different sizes, perhaps
    shares_.insert(place, {std::string(module), {}, axis});
    grew_ = true;
  } else if (is_requested || !may_leave_) {
    const LayerPlan& differing = other == left ? first : *other;
    if (!warning_)
      warning_ =
          Diagnostic(Severity::warning, "fused-layers", text_of("{}.weight", differing.layer),
                     text_of("vLLM will not load this file: it joins this layer with {} and needs one scheme for both, "
                             "but {}",
                             (left != nullptr ? *left : first).layer,
                             left != nullptr ? "that one is not quantized" : "they differ"),
                     "give q, k and v, gate and up, and all experts of a block one spec, or use another runtime");
  } else if (left != nullptr) {
    if (!is_known) shares_.insert(place, {std::string(module), {}, 0});
    grew_ |= shares_[place].reason.empty();
    shares_[place].reason = text_of(
        "vLLM joins this layer with {} and needs one scheme for both, but that one is not quantized", left->layer);
  }
}

size_t FusedLayerSchemes::place_of_module(std::string_view module) const {
  const auto is_before = [](const Share& share, std::string_view name) { return share.module < name; };
  return static_cast<size_t>(std::lower_bound(shares_.begin(), shares_.end(), module, is_before) - shares_.begin());
}

const FusedLayerSchemes::Share* FusedLayerSchemes::find(std::string_view layer) const {
  if (shares_.empty()) return nullptr;
  const std::string module = vllm::joined_layer(layer);
  const size_t place = place_of_module(module);
  return place < shares_.size() && shares_[place].module == module ? &shares_[place] : nullptr;
}

std::string_view FusedLayerSchemes::reason_to_leave(std::string_view layer) const {
  const Share* const share = find(layer);
  return share == nullptr ? std::string_view() : std::string_view(share->reason);
}

uint64_t FusedLayerSchemes::common_axis(std::string_view layer, uint64_t axis) const {
  const Share* const share = find(layer);
  return share == nullptr || share->axis == 0 ? axis : share->axis;
}

}  // namespace wasmquant
