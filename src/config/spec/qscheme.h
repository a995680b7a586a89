// Which elements share one scale, in Quark's terms.
#pragma once
#include <cstdint>

namespace wasmquant {

enum class QScheme : uint8_t { per_tensor, per_channel, per_group, per_block };

}  // namespace wasmquant
