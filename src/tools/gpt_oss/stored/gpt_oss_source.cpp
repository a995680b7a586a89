// gpt-oss: an expert parameter P is stored as P_blocks and P_scales (tools/gpt_oss/gpt_oss.cpp).
#include "checkpoint/read_only_format.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {
namespace {

constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";

class GptOssSource final : public SourceFormat {
 public:
  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const std::string_view name = tensor.stored.name;
    if (name.ends_with(kBlocks)) return tensor.stored.shape.size() > 2 ? StoredRole::codes : StoredRole::plain;
    const bool is_part =
        name.ends_with(kScales) && model.find(text_of("{}{}", without(name, kScales), kBlocks)) != nullptr;
    return is_part ? StoredRole::part : StoredRole::plain;
  }

  std::string weight_name(const ModelTensor& codes) const override {
    return std::string(without(codes.stored.name, kBlocks));
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex&, const ModelTensor& codes) const override {
    const std::vector<uint64_t>& stored = codes.stored.shape;
    if (stored.size() != 4) return {};
    return {{stored[0], 32 * stored[2], stored[1]}};
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    const ModelTensor* blocks = model.find(text_of("{}{}", weight.layer, kBlocks));
    if (blocks == nullptr || role_of(model, *blocks) != StoredRole::codes) return std::optional<StoredWeight>();
    TRY(found, locate(model, "gpt-oss-mxfp4", weight, {groups_of(Dtype::fp4, ScaleFormat::e8m0, 32)}));
    found.task.name = weight.layer;
    return std::optional(std::move(found));
  }

 private:
  static std::string_view without(std::string_view name, std::string_view ending) noexcept {
    return name.substr(0, name.size() - ending.size());
  }
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> gpt_oss_source(const json::Value&) {
  return std::unique_ptr<SourceFormat>(std::make_unique<GptOssSource>());
}

}  // namespace wasmquant
