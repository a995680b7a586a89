// MLX: a module with scales is quantized (tools/mlx/mlx.cpp). config.json gives mode, bits and group size
// for all modules and for single ones by path: "quantization": {"group_size", "bits", "mode", "<path>": {...} | false}.
#include "checkpoint/read_only_format.h"
#include "pipeline/stored/source_format.h"
#include "tools/mlx/stored/mlx_names.h"

namespace wasmquant {
namespace {

struct Mode {
  std::string_view name;
  int64_t group_size, bits;  // if config.json does not say
};
constexpr Mode kModes[] = {{"affine", 64, 4}, {"mxfp4", 32, 4}, {"nvfp4", 16, 4}, {"mxfp8", 32, 8}};

class MlxSource final : public SourceFormat {
 public:
  explicit MlxSource(json::Value config) : config_(std::move(config)) {}

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const auto [layer, part] = split_name(tensor.stored.name);
    if (!is_one_of(part, {"weight", "scales", "biases"}) || !is_quantized(model, layer)) return StoredRole::plain;
    return part == "weight" ? StoredRole::codes : StoredRole::part;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const std::string_view layer = split_name(codes.stored.name).layer;
    const auto spec = spec_of(layer);
    std::vector<uint64_t> shape = tensor_of(model, layer, "scales")->stored.shape;
    if (!spec || shape.empty() ||
        __builtin_mul_overflow(shape.back(), static_cast<uint64_t>(spec->group_size), &shape.back()))
      return {};
    return {std::move(shape)};
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    if (!is_quantized(model, weight.layer)) return std::optional<StoredWeight>();
    TRY(spec, spec_of(weight.layer));
    auto found = locate(model, "mlx", weight, {spec});
    if (!found && found.error().code == ErrorCode::shape_mismatch)
      found.error().message += text_of(" in groups of {} with {} bits, as config.json says", spec.group_size,
                                       uint32_t{info_of(spec.dtype).bits});
    if (!found) return std::move(found.error());
    return std::optional(std::move(*found));
  }

  bool rearranges() const noexcept override { return true; }
  Status restore(const ModelIndex& model, List<ModelTensor>& tensors, std::string& config) const override {
    return restore_mlx_names(model, tensors, config);
  }

 private:
  static bool is_quantized(const ModelIndex& model, std::string_view layer) {
    const ModelTensor* weight = tensor_of(model, layer, "weight");
    return weight != nullptr && weight->stored.dtype == StorageDtype::U32 &&
           tensor_of(model, layer, "scales") != nullptr;
  }

  Result<QuantizationSpec> spec_of(std::string_view layer) const {
    const json::Value* said = config_.find(layer);
    const json::Value& own = said != nullptr && said->is_object() ? *said : config_;
    const std::string where = &own == &config_ ? "/quantization" : text_of("/quantization/{}", layer);
    const std::string_view asked = own["mode"].is_string() ? own["mode"].as_string() : std::string_view("affine");
    for (const char* key : {"bits", "group_size"})
      if (!own[key].is_null() && !own[key].is_integer())
        return error_at(ErrorCode::config_invalid, text_of("{}/{}", where, std::string_view(key)),
                        "found {}; expected a whole number", json::write(own[key]));
    for (const Mode& mode : kModes) {
      if (asked != mode.name) continue;
      const int64_t group = own["group_size"].is_integer() ? own["group_size"].as_integer() : mode.group_size;
      const int64_t bits = own["bits"].is_integer() ? own["bits"].as_integer() : mode.bits;
      if (mode.name == "affine") {
        const bool is_known = (group == 32 || group == 64 || group == 128) && bits >= 2 && bits <= 8 && bits != 7;
        constexpr Dtype kDtypes[] = {Dtype::uint2, Dtype::uint3, Dtype::uint4, Dtype::uint5,
                                     Dtype::uint6, Dtype::uint7, Dtype::uint8};
        if (is_known) return groups_of(kDtypes[bits - 2], ScaleFormat::float32, static_cast<uint64_t>(group));
      } else if (group == mode.group_size && bits == mode.bits) {
        return groups_of(bits == 8 ? Dtype::fp8_e4m3 : Dtype::fp4, group == 16 ? ScaleFormat::e4m3 : ScaleFormat::e8m0,
                         static_cast<uint64_t>(group));
      }
      return error_at(
          ErrorCode::format_unsupported, where,
          "found {} bits in groups of {}; MLX has affine codes of 2, 3, 4, 5, 6 and 8 bits in groups of 32, "
          "64 and 128, mxfp4 and mxfp8 in groups of 32, nvfp4 in groups of 16",
          bits, group);
    }
    return error_at(ErrorCode::format_unsupported, where,
                    "found mode {q}; this version decodes affine, mxfp4, nvfp4 and mxfp8", asked);
  }

  json::Value config_;
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> mlx_source(const json::Value& config) {
  return std::unique_ptr<SourceFormat>(std::make_unique<MlxSource>(config));
}

}  // namespace wasmquant
