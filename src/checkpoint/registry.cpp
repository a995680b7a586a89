// The checkpoint formats by name, from tools/tools.def.
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

#define WASMQUANT_CHECKPOINT_FORMAT(format) const CheckpointFormat& format() noexcept;
#include "tools/tools.def"

std::span<const CheckpointFormat* const> checkpoint_formats() noexcept {
  static const CheckpointFormat* const all[] = {
#define WASMQUANT_CHECKPOINT_FORMAT(format) &format(),
#include "tools/tools.def"
  };
  return all;
}

const CheckpointFormat* checkpoint_format_named(std::string_view name) noexcept {
  for (const CheckpointFormat* const format : checkpoint_formats())
    if (format->name() == name) return format;
  return nullptr;
}

}  // namespace wasmquant
