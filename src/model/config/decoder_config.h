// The decoder behind an encoder (T5), in the same config.json.
#pragma once
#include "model/config/architecture.h"

namespace wasmquant::model {

/// Whether it is that of a model; or there is none.
bool decoder_holds_together(const Architecture& architecture) noexcept;

}  // namespace wasmquant::model
