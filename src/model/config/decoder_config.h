// The decoder behind an encoder (T5), in the same config.json.
#pragma once
#include "model/config/architecture.h"

namespace wasmquant::model {

/// Whether the decoder has all that a forward pass needs of one; true of a model without a decoder.
bool decoder_holds_together(const Architecture& architecture) noexcept;

}  // namespace wasmquant::model
