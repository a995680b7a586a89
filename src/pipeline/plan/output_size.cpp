#include "pipeline/plan/output_size.h"

#include <iterator>
#include <span>

#include "core/message.h"

namespace wasmquant {
namespace {

// Best first.
constexpr std::string_view kRecipes[] = {"q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k"};
constexpr std::string_view kPresets[] = {"int8", "int4_wo_32", "int4_wo_128"};

// "24.10 MB", in decimal units.
std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  uint64_t size = 1;
  for (; bytes / size >= 1000 && unit + 1 < std::size(kUnits); size *= 1000) ++unit;
  if (unit == 0) return text_of("{} B", bytes);
  const uint64_t rest = (bytes % size * 100 + size / 2) / size, whole = bytes / size + rest / 100;
  return text_of("{}.{}{} {}", whole, rest / 10 % 10, rest % 10, kUnits[unit]);
}

}  // namespace

bool is_larger(uint64_t bytes, uint64_t model_bytes) noexcept { return bytes > model_bytes + model_bytes / 1000; }

std::span<const std::string_view> shrinking_presets(bool takes_recipes) noexcept {
  if (takes_recipes) return kRecipes;
  return kPresets;
}

Diagnostic larger_output_warning(const ModelIndex& model, uint64_t bytes, std::string_view format,
                                 SizedPreset smaller) {
  const uint64_t before = model.file_bytes();
  const auto tenths = static_cast<uint64_t>(1000.0 * static_cast<double>(bytes - before) / static_cast<double>(before));
  return {Severity::warning, "output-larger", model.files().front().name,
          text_of("the result is {}.{} % larger than the model: {} become {}", tenths / 10, tenths % 10,
                  size_text(before), size_text(bytes)),
          smaller.preset.empty() ? text_of("keep the model as it is: no usual preset makes it smaller as {}", format)
                                 : text_of("use {}, which gives {}", smaller.preset, size_text(smaller.bytes))};
}

}  // namespace wasmquant
