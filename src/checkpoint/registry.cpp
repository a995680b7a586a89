// The checkpoint formats, one row each.
#include <array>
#include <string>

#include "checkpoint/compressed_tensors.h"
#include "checkpoint/fake_quantized.h"
#include "checkpoint/quark.h"
#include "checkpoint/scaled_floats.h"
#include "checkpoint/transposed_words.h"

namespace wasmquant {
namespace {

constexpr CompressedTensors kCompressedTensors;
constexpr Quark kQuark;
constexpr FakeQuantized kFakeQuantized;
constexpr Awq kAwq;
constexpr Gptq kGptq;
constexpr ScaledFloats kScaledFloats;
constexpr std::array<const CheckpointFormat*, 6> kFormats = {&kCompressedTensors, &kQuark,       &kAwq, &kGptq,
                                                             &kFakeQuantized,     &kScaledFloats};

}  // namespace

const CheckpointFormat* checkpoint_format_named(std::string_view name) noexcept {
  for (const CheckpointFormat* format : kFormats)
    if (format->name() == name) return format;
  return nullptr;
}

std::string checkpoint_format_names() {
  std::string names;
  for (const CheckpointFormat* format : kFormats)
    if (!format->is_read_only()) names += text_of("{}{}", names.empty() ? "" : ", ", format->name());
  return names;
}

}  // namespace wasmquant
