// The checkpoint formats by name, from formats.def.
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

#define WASMQUANT_CHECKPOINT_FORMAT(format) const CheckpointFormat& format() noexcept;
#include "checkpoint/formats.def"

std::span<const CheckpointFormat* const> checkpoint_formats() noexcept {
  static const CheckpointFormat* const all[] = {
#define WASMQUANT_CHECKPOINT_FORMAT(format) &format(),
#include "checkpoint/formats.def"
  };
  return all;
}

const CheckpointFormat* checkpoint_format_named(std::string_view name) noexcept {
  for (const CheckpointFormat* const format : checkpoint_formats())
    if (format->name() == name) return format;
  return nullptr;
}

}  // namespace wasmquant
