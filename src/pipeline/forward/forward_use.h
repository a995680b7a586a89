// What a forward pass is for, and which architectures serve it.
#pragma once
#include <cstdint>

#include "core/result.h"
#include "model/config/architecture.h"

namespace wasmquant {

/// `embed` is for encoders, and for decoders that say they make embeddings; the others are for decoders. `measure`: calibrate, for
/// measuring candidates of all layers of a block at once.
enum class ForwardUse : uint8_t { run, calibrate, measure, embed };

/// `makes_embeddings`: the files of the model say how its states are pooled. Errors: not-implemented, which says what else the model
/// can be run for.
Status check_use(const model::Architecture& architecture, bool makes_embeddings, ForwardUse use);

}  // namespace wasmquant
