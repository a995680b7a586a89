// An architecture as bytes: read from config.json once, then sent to each worker with the tasks of its pass.
#pragma once
#include <string>
#include <string_view>

#include "core/result.h"
#include "model/config/architecture.h"

namespace wasmquant {

/// "wqar", version (1 byte), the fields, encoded as in packed_tasks.h.
std::string packed_architecture(model::Architecture architecture);
/// Errors: argument-invalid with the byte, or naming what no model has.
Result<model::Architecture> read_packed_architecture(std::string_view bytes);

}  // namespace wasmquant
