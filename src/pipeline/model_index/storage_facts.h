// Tensors whose names say how others are stored: scales, zero points and the like, under the names of any tool.
#pragma once
#include <string>
#include <string_view>

#include "core/list.h"
#include "numeric/storage_dtype.h"

namespace wasmquant {

class ModelIndex;
struct ModelTensor;

/// Whether LAYER.PART belongs, by its name, to what a layer reads or gives: input_scale, qscale_act.
bool is_of_activations(std::string_view part) noexcept;

/// Whether elements of this dtype are integers that may be codes; not I64, which are indexes and counters.
bool is_integer_of_codes(StorageDtype dtype) noexcept;

/// The tensors next to `tensor`, which is LAYER.weight or a parameter, whose names say how it is stored: LAYER.scale,
/// LAYER.weight.absmax, PARAMETER_scale_inv.
List<const ModelTensor*> storage_facts_beside(const ModelIndex& model, const ModelTensor& tensor);

/// A sentence for integers that are codes, because something in their module says how they are stored; empty for others.
std::string why_not_values(const ModelIndex& model, const ModelTensor& tensor);

/// Whether config.json says (input_rotation) that runtimes have to rotate inputs of layers, for which the weights were
/// made.
bool is_rotated_source(const ModelIndex& model);

}  // namespace wasmquant
