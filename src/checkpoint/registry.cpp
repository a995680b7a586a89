// The checkpoint formats by name, from formats.def.
#include <string>

#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

#define WASMQUANT_CHECKPOINT_FORMAT(format) const CheckpointFormat& format() noexcept;
#include "checkpoint/formats.def"

namespace {

using GetFormat = const CheckpointFormat&() noexcept;
constexpr GetFormat* kFormats[] = {
#define WASMQUANT_CHECKPOINT_FORMAT(format) format,
#include "checkpoint/formats.def"
};

}  // namespace

const CheckpointFormat* checkpoint_format_named(std::string_view name) noexcept {
  for (GetFormat* const format : kFormats)
    if (format().name() == name) return &format();
  return nullptr;
}

std::string checkpoint_format_names() {
  std::string names;
  for (GetFormat* const format : kFormats)
    if (!format().is_read_only()) names += text_of("{}{}", names.empty() ? "" : ", ", format().name());
  return names;
}

}  // namespace wasmquant
