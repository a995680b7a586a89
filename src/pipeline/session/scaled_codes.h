// Codes of a tile's values by scales: those of the whole tensor, or the tile's own.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/session/tile_encoder.h"
#include "quantize/stages.h"

namespace wasmquant {

class ScaledCodes {
 public:
  explicit ScaledCodes(const EncoderInput& in);

  /// Finds scales for `length` elements each; x begins at `first_element`, the first scale is number `first_scale`.
  void find_scales(std::span<const float> x, uint64_t length, uint64_t first_scale, uint64_t first_element,
                   std::span<QParams> qparams);
  /// Codes of x, to which `g` assigns `qparams` from flat element `begin` on; returns their error.
  kernels::ErrorSums encode(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x,
                            uint64_t begin, uint8_t* codes);
  /// The values of codes; valid until the next call.
  std::span<const float> decode(const Granularity& g, std::span<const QParams> qparams, const uint8_t* codes,
                                uint64_t count, uint64_t begin);
  /// The values of x's codes, to y, without the codes.
  void simulate(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x, uint64_t begin,
                std::span<float> y) const;
  /// Of scale_format e4m3, or of the other of two stages; else 1.
  float second_scale() const noexcept { return in_.scales ? in_.scales->second_scale() : 1.0f; }

 private:
  void search_scales(std::span<const float> x, uint64_t length, uint64_t first_element, std::span<QParams> qparams);

  const EncoderInput in_;
  const std::optional<TwoStages> stages_;  // if progressive
  std::vector<float> first_stage_;         // codes of the first of two stages; of biased codes their values
  std::vector<float> decoded_;
};

}  // namespace wasmquant
