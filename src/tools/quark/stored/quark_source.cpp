// AMD Quark's exports: the config gives the scheme, and shapes of scales refine it. With weight_format fake_quantized the
// weights are values, stored with the scales that they were rounded by.
#include "config/config_text.h"
#include "config/resolve/resolve.h"
#include "pipeline/stored/scale_scheme.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {
namespace {

constexpr std::string_view kQuark = "quark";
constexpr uint64_t kCodesPerWord = 8;  // of 4 bits

// What made the file, or is done where it runs: it says nothing of the weights, and may be what this version cannot do.
constexpr const char* kNotOfWeights[] = {"algo_config", "pre_quant_opt_config", "softmax_quant_spec",
                                         "keep_prequantized_layers"};

// Which layers have codes is seen in the tensors, so that an exclusion that this version cannot match does no harm.
json::Value of_weights(const json::Value& block) {
  json::Array usable;
  for (const json::Value& entry : block["exclude"].items())
    if (is_usable_pattern(entry.as_string())) usable.push_back(entry);
  json::Value own = block;
  if (!block["exclude"].is_null()) own.set("exclude", std::move(usable));
  for (const char* key : kNotOfWeights)
    if (!block[key].is_null()) own.set(key, json::Value());
  return own;
}

class QuarkSource final : public SourceFormat {
 public:
  explicit QuarkSource(Config config) : config_(std::move(config)) {}

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const StoredRole use = use_in_scaled_weight(model, tensor);
    return use == StoredRole::codes && holds_values() ? StoredRole::plain : use;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const std::vector<uint64_t>& stored = codes.stored.shape;
    if (stored.size() != 2) return {stored};
    if (codes.stored.dtype == StorageDtype::I32) {
      // Scales [groups, rows] count the rows of what is transposed, of which the last word of a line may be filled in
      // part; words of rows are those of 4 bits.
      const ModelTensor* scale = tensor_of(model, split_name(codes.stored.name).layer, "weight_scale");
      if (scale != nullptr && scale->stored.shape.size() == 2) return {{scale->stored.shape[1], stored[0]}};
      return {{stored[0], stored[1] * kCodesPerWord}};
    }
    // Codes per stored element: bytes; fp4; fp6, mx6; int3; mx9, bfp16.
    constexpr struct { uint64_t codes, elements; } kFactors[] = {{1, 1}, {2, 1}, {4, 3}, {8, 3}, {8, 9}};
    List<std::vector<uint64_t>> shapes{stored};
    for (const auto& factor : kFactors) {
      const uint64_t columns = stored[1] * factor.codes / factor.elements;
      shapes.push_back({stored[0], columns});
      shapes.push_back({columns, stored[0]});
    }
    return shapes;
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    if (holds_values()) return std::optional<StoredWeight>();
    if (weight.shape.empty())
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight", weight.layer),
                      "the last word of each row may be filled in part, and the tensors and config.json of this model "
                      "name more than one length that fits; decode it with AMD Quark");
    const ModelTensor* plain = tensor_of(model, weight.layer, "weight");
    const ModelTensor* scale = tensor_of(model, weight.layer, "weight_scale");
    const bool may_be_blocks = plain != nullptr && plain->stored.dtype == StorageDtype::U8;
    if (scale == nullptr && !may_be_blocks) return std::optional<StoredWeight>();
    const Resolved resolved = Resolver(config_).resolve(text_of("{}.weight", weight.layer), weight.shape, true);
    Stages stages = resolved.weight;
    const bool has_blocks = may_be_blocks && stages.size() == 1 && info_of(stages.front().dtype).is_block();
    if (!has_blocks) {  // block dtypes have no separate scales
      if (scale == nullptr) return std::optional<StoredWeight>();
      if (stages.empty())
        return error_at(ErrorCode::config_invalid, weight.layer,
                        "has a scale, but quantization_config does not quantize it");
      correct(stages, *scale, weight);
    }
    TRY(found, locate(model, kQuark, weight, stages));
    return std::optional(std::move(found));
  }

  // Words of groups run along the outputs, which the scales count.
  uint64_t codes_per_word(const ModelIndex& model, const WeightDescription& weight) const override {
    const ModelTensor* codes = tensor_of(model, weight.layer, "weight");
    const bool is_words = codes != nullptr && codes->stored.dtype == StorageDtype::I32 && weight.shape.size() == 2 &&
                          codes->stored.shape.size() == 2 && codes->stored.shape[0] == weight.shape[0] &&
                          codes->stored.shape[1] * kCodesPerWord == weight.shape[1];
    return is_words ? kCodesPerWord : 1;
  }

  PackMethod pack_method() const noexcept override { return config_.export_info.value_or(ExportInfo{}).pack_method; }

 private:
  bool holds_values() const noexcept {
    return config_.export_info && config_.export_info->weight_format == WeightFormat::fake_quantized;
  }

  static void correct(Stages& stages, const ModelTensor& scale, const WeightDescription& weight) {
    QuantizationSpec& spec = stages.front();
    const DtypeInfo& dtype = info_of(spec.dtype);
    const bool is_to_the_letter = !dtype.is_integer || spec.scale_format != ScaleFormat::float32;
    if (stages.size() == 1 && !is_to_the_letter)
      set_scheme(spec, scale.stored.shape, weight,
                 {.group_axis = dtype.bits != 3 ? 0u : 1u, .channel_axes = 1});  // all but int3 are transposed
  }

  Config config_;
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> quark_source(const json::Value& block) {
  TRY(parsed, config::parse_value(of_weights(block), kQuark));
  const auto refuse_bias = [&](const LayerConfig& layer) -> Status {
    const bool has_codes = !layer.bias.empty() && !info_of(layer.bias.front().dtype).is_plain_cast();
    const bool is_real =
        !parsed.config.export_info || parsed.config.export_info->weight_format == WeightFormat::real_quantized;
    if (!has_codes || !is_real) return {};
    return error_at(
        ErrorCode::format_unsupported, "/quantization_config",
        "says that the checkpoint has quantized biases, which cannot be read: export it without a spec for biases, or "
        "with weight_format fake_quantized");
  };
  TRY_VOID(refuse_bias(parsed.config.global));
  for (const auto* layers : {&parsed.config.layer_type, &parsed.config.layer})
    for (const auto& [name, layer] : *layers) TRY_VOID(refuse_bias(layer));
  return std::unique_ptr<SourceFormat>(std::make_unique<QuarkSource>(std::move(parsed.config)));
}

}  // namespace wasmquant
