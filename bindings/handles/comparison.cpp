#include "handles/comparison.h"

namespace wasmquant::bindings {

Made<BoundComparison> BoundComparison::make(const BoundModelIndex& reference, const BoundModelIndex& quantized,
                                            const std::string& options_text) {
  TRY(options, json::parse(options_text));
  const ModelIndex &left = reference.index(), &right = quantized.index();
  for (const ModelIndex* model : {&left, &right})
    if (!model->folder_config()) return model->folder_config().error();
  TRY(compared, compare_models(left, *left.folder_config(), right, *right.folder_config(), tile_bytes_of(options)));
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
