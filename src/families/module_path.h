// Module names such as "model.layers.0.mlp.gate", component by component.
#pragma once
#include <cstdint>
#include <string_view>

namespace wasmquant::families {

/// Removes and returns the component before the first dot: "model" of "model.layers.0". "" when nothing is left.
std::string_view next_component(std::string_view& rest) noexcept;
/// "gate" of "model.layers.0.mlp.gate".
std::string_view last_component(std::string_view path) noexcept;
/// Whether a component of the path equals `part`.
bool has_component(std::string_view path, std::string_view part) noexcept;
/// Whether the path ends with `ending`, at the start of a component: "mlp.gate" ends "model.layers.0.mlp.gate".
bool ends_with_components(std::string_view path, std::string_view ending) noexcept;
/// The number after the first component called `layers`, `layer`, `blocks`, `block` or `h`; -1 without one.
int64_t layer_index_of(std::string_view path) noexcept;

/// Whether a tensor is a scale or zero point of an attention's queries, keys or values as a cache holds them, in the names
/// that vLLM reads: `self_attn.k_scale`, `attn.v_zero_point`, `k_proj.k_scale`; not that of a weight or of inputs.
bool is_cache_scale(std::string_view tensor_name);

/// Whether the layer is that of one of several experts: below `experts` and a number, "mlp.experts.3.gate_proj".
bool is_single_expert(std::string_view layer) noexcept;

}  // namespace wasmquant::families
