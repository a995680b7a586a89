#include "model/config/decoder_config.h"

#include <algorithm>
#include <cmath>

#include "core/message.h"

namespace wasmquant::model {
namespace {

constexpr uint32_t kBeyond = 1 << 30, kMostLayers = 1 << 12;

// All buckets of a table are of the tokens before.
bool reaches(const Relative& relative) noexcept { return relative.farthest > relative.buckets / 2; }

}  // namespace

Status add_decoder(const json::Value& config, Architecture& out) {
  const auto size = [&](const char* key, uint32_t otherwise) {
    const double found = config[key].as_number();
    return !config[key].is_number()         ? otherwise
           : found >= 0 && found <= kBeyond ? static_cast<uint32_t>(found)
                                            : kBeyond;
  };
  const uint32_t layers = size("num_decoder_layers", out.layers);
  if (layers < 1 || std::max(layers, out.layers) > kMostLayers)
    return error_at(ErrorCode::config_invalid, "/num_decoder_layers", "{} layers; 1 to {} are possible", layers,
                    kMostLayers);
  Decoder& decoder = out.decoder;
  decoder.first = out.layers;
  decoder.start = size("decoder_start_token_id", kBeyond);
  if (decoder.start >= out.vocabulary)
    return error_at(ErrorCode::config_invalid, "/decoder_start_token_id",
                    "must be the token that the decoder begins with, one of {}", out.vocabulary);
  if (!reaches(out.relative))
    return error_at(ErrorCode::config_invalid, "/relative_attention_max_distance",
                    "is {}; it must be above half of the {} buckets", out.relative.farthest, out.relative.buckets);
  out.layers += 2 * layers;
  out.is_sliding.resize(out.layers);
  out.is_rotated.resize(out.layers);
  if (decoder.scales_logits) out.scales.logits /= std::sqrt(static_cast<float>(out.hidden));
  return {};
}

bool decoder_holds_together(const Architecture& a) noexcept {
  const Decoder& decoder = a.decoder;
  if (decoder.first == 0) return true;
  const bool has_blocks = decoder.first < a.layers && (a.layers - decoder.first) % 2 == 0;
  return has_blocks && a.is_encoder && decoder.start < a.vocabulary && a.mixers.empty() && a.sizes.empty() &&
         a.has_experts.empty() && decoder.names.has(ModelPart::layers) && decoder.names.has(ModelPart::encoded_k) &&
         decoder.names.has(ModelPart::encoded_v) && decoder.names.has(ModelPart::feed_forward_norm) &&
         has_feed_forward(decoder.names) && reaches(a.relative);
}

}  // namespace wasmquant::model
