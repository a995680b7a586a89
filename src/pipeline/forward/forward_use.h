// What a forward pass is for, and which architectures serve it.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "model/config/architecture.h"

namespace wasmquant {

/// `embed` is for encoders, and for decoders that say they make embeddings; the others are for decoders. `measure`: calibrate, for
/// measuring candidates of all layers of a block at once. `compare`: embed, of models that are judged by their embeddings.
enum class ForwardUse : uint8_t { run, calibrate, measure, embed, compare };

/// "run", "measure"...; calibrate for any other.
ForwardUse forward_use_named(std::string_view name) noexcept;

/// `decodes`: an encoder has a decoder behind it. `makes_embeddings`: the files of the model say how its states are pooled. Errors: not-implemented, which says what else the model
/// can be run for.
Status check_use(const model::Architecture& architecture, bool decodes, bool makes_embeddings, ForwardUse use);

}  // namespace wasmquant
