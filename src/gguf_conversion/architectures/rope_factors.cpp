// Llama 3.1's RoPE scaling to longer contexts: wavelengths above original/low_freq_factor are multiplied by `factor`,
// those below original/high_freq_factor stay, and those between are interpolated linearly in the frequency.
// Source: transformers, modeling_rope_utils.py, _compute_llama3_parameters.
#include <cmath>
#include <cstring>

#include "families/config_reader.h"
#include "gguf_conversion/architectures/hyperparameters.h"
#include "numeric/exponential.h"

namespace wasmquant::conversion {
namespace {

void append(std::string& bytes, float value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof(value)); }

// Gemma 4 rotates the first pairs of a head that is otherwise as if not rotated: the frequencies of the others are divided by
// a number without end.
std::string proportional_factors(const families::ConfigReader& scaling, uint32_t head_width) {
  const auto rotated = static_cast<uint32_t>(head_width * scaling.number("partial_rotary_factor").value_or(1) / 2);
  std::string bytes;
  for (uint32_t pair = 0; pair < head_width / 2; ++pair) append(bytes, pair < rotated ? 1.0f : 1e30f);
  return bytes;
}

}  // namespace

std::string rope_factors(const json::Value& config, uint32_t head_width) {
  constexpr double kPi = 3.14159265358979323846;
  const families::ConfigReader outer(config);
  const json::Value* parameters = outer.find("rope_parameters|rope_scaling");
  if (parameters == nullptr) return {};
  if (const json::Value* global = parameters->find("full_attention")) parameters = global;
  const families::ConfigReader scaling(*parameters);
  if (scaling.text("rope_type") == "proportional") return proportional_factors(scaling, head_width);
  if (scaling.text("rope_type|type") != "llama3") return {};
  const double base = scaling.number("rope_theta").value_or(outer.number("rope_theta").value_or(10000));
  const double factor = scaling.number("factor").value_or(8), low = scaling.number("low_freq_factor").value_or(1);
  const double high = scaling.number("high_freq_factor").value_or(4);
  const double original = scaling.number("original_max_position_embeddings").value_or(8192);
  if (!(base > 0 && factor > 0 && low > 0 && high > low && original > 0)) return {};

  std::string bytes;
  for (uint32_t i = 0; i + 1 < head_width; i += 2) {
    // The frequency as float32, like all other code.
    const double exponent = static_cast<double>(i) / head_width;
    const auto frequency = static_cast<float>(1 / exp2_of(exponent * log2_of(base)));
    const double wavelength = 2 * kPi / frequency;
    double divisor = 1;
    if (wavelength > original / low) {
      divisor = factor;
    } else if (wavelength >= original / high) {
      const double mix = (original / wavelength - low) / (high - low);
      divisor = 1 / ((1 - mix) / factor + mix);
    }
    append(bytes, static_cast<float>(divisor));
  }
  return bytes;
}

}  // namespace wasmquant::conversion
