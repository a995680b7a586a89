// What is left over of a quantized checkpoint once its weights are recognised. Each tensor is a value, codes, or a part of
// codes; scales without codes and codes without a scale are none of these.
#pragma once
#include "core/list.h"
#include "core/result.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {

/// Checks that nothing is left over. `roles`: of the model's tensors; `is_declared`: config.json says that weights are
/// codes. Errors: tensor-missing at a scale without codes and at codes without a scale, dtype-unsupported at codes and
/// parts that no layout has.
Status check_leftovers(const ModelIndex& model, const List<StoredRole>& roles, bool is_declared);

}  // namespace wasmquant
