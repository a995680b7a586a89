#include "handles/comparison.h"

namespace wasmquant::bindings {

Made<BoundComparison> BoundComparison::make(const BoundModelIndex& reference, const std::string& reference_config,
                                            const BoundModelIndex& quantized, const std::string& quantized_config,
                                            const std::string& options_text) {
  TRY(options, json::parse(options_text));
  TRY(compared,
      compare_models(reference.index(), reference_config, quantized.index(), quantized_config, tile_bytes_of(options)));
  return std::unique_ptr<BoundComparison>(new BoundComparison(std::move(compared)));
}

json::Value BoundComparison::summary() const {
  json::Value out;
  out.set("pairs", static_cast<uint64_t>(compared_.pairs.size()));
  out.set("diagnostics", to_json(compared_.diagnostics));
  return out;
}

Region BoundComparison::pack(uint32_t first, uint32_t last) {
  packed_ = packed_tasks(compared_, first, last);
  return region_of(packed_);
}

}  // namespace wasmquant::bindings
