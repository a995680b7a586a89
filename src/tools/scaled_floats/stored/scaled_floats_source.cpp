// Floats of 8 and 4 bits with scales (names: checkpoint/scaled_floats.h), in models whose config.json says fp8,
// fbgemm_fp8 or nothing, and in NVIDIA ModelOpt's exports, which also have integers.
#include <algorithm>

#include "pipeline/stored/source_format.h"
#include "tools/scaled_floats/scaled_floats.h"

namespace wasmquant {
namespace {

bool is_number(const ModelTensor& tensor) noexcept {
  return tensor.stored.dtype == StorageDtype::F32 && tensor.stored.end - tensor.stored.begin == sizeof(float);
}

bool is_float(const ModelTensor& tensor) noexcept {
  return is_quantizable(tensor.stored.dtype) && !small_float_of(tensor.stored.dtype) &&
         tensor.stored.dtype != StorageDtype::F64;
}

/// A weight's codes and their parameters.
struct ScaledTensors {
  const ModelTensor *codes = nullptr, *scale = nullptr;
  const ModelTensor* second = nullptr;   // of NVFP4
  bool divides = false;                  // by the second scale
  const ModelTensor* factors = nullptr;  // pre_quant_scale

  /// int4 with scales next to bytes: each byte has two rows.
  bool has_row_pairs() const noexcept { return codes->stored.dtype == StorageDtype::U8 && is_float(*scale); }

  std::vector<uint64_t> shape() const {
    std::vector<uint64_t> shape = codes->stored.shape;
    if (shape.empty() || codes->stored.dtype != StorageDtype::U8) return shape;
    uint64_t& doubled = has_row_pairs() ? shape.front() : shape.back();
    doubled *= 2;
    return shape;
  }

  /// `block`: rows and columns of blocks if config.json states them, else 0. nullopt: they do not go together.
  std::optional<QuantizationSpec> spec(const std::vector<uint64_t>& shape, const uint64_t (&block)[2]) const {
    const bool is_fp4 = codes->stored.dtype == StorageDtype::U8 && !has_row_pairs();
    std::optional<Dtype> dtype = is_fp4 ? Dtype::fp4 : small_float_of(codes->stored.dtype);
    if (!dtype && is_float(*scale)) dtype = has_row_pairs() ? Dtype::int4 : Dtype::int8;
    if (!dtype) return std::nullopt;
    auto spec = scaled_floats_spec(*dtype, shape, scale->stored.dtype, scale->stored.shape, block);
    if (spec && !go_together(*spec)) spec.reset();
    return spec;
  }

  Error misfit() const {
    std::string below;
    if (second != nullptr)
      below = text_of(", under {} of {q},", describe(second->stored.dtype, second->stored.shape), second->stored.name);
    return error_at(ErrorCode::dtype_unsupported, scale->stored.name,
                    "{}{} is not a supported scale for {} of {q}; it decodes float32, float16, bfloat16 and F8_E8M0 "
                    "scales per tensor, row, group and block, and for NVFP4 F8_E4M3 scales in groups of 16 with one "
                    "float32 scale per tensor",
                    describe(scale->stored.dtype, scale->stored.shape), below,
                    describe(codes->stored.dtype, codes->stored.shape), codes->stored.name);
  }

  /// Only NVFP4 has a second scale; factors are floats.
  bool go_together(const QuantizationSpec& spec) const noexcept {
    if (factors != nullptr && !is_float(*factors)) return false;
    if (spec.scale_format != ScaleFormat::e4m3) return second == nullptr;
    return second != nullptr && is_number(*second);
  }
};

class ScaledFloatsSource final : public SourceFormat {
 public:
  ScaledFloatsSource(const json::Value& config, bool is_modelopt) : is_modelopt_(is_modelopt) {
    const json::Array& sides = config["weight_block_size"].items();
    for (size_t i = 0; i < sides.size() && i < 2; ++i)
      block_[i] = static_cast<uint64_t>(std::max<int64_t>(sides[i].as_integer(), 0));
  }

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const auto [layer, part] = split_name(tensor.stored.name);
    if (part == "weight") return tensors_of(model, layer).codes != nullptr ? StoredRole::codes : StoredRole::plain;
    if (is_packed_word(tensor)) return StoredRole::codes;  // which find() refuses
    if (is_modelopt_ && is_one_of(part, {"k_scale", "v_scale", "k_bias", "v_bias"}) && tensor.stored.shape.size() < 2)
      return StoredRole::part;  // of the key-value cache; a projection's bias is named k_proj.bias
    const bool is_part = std::find(std::begin(kScaleNames), std::end(kScaleNames), part) != std::end(kScaleNames) ||
                         is_one_of(part, {"input_scale", "activation_scale", "weight_scale_2", "weight_global_scale",
                                          "input_scale_ub", "pre_quant_scale", "comfy_quant"});
    return is_part && tensors_of(model, layer).codes != nullptr ? StoredRole::part : StoredRole::plain;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const ScaledTensors t = tensors_of(model, split_name(codes.stored.name).layer);
    return t.codes == nullptr ? List<std::vector<uint64_t>>() : List<std::vector<uint64_t>>{t.shape()};
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    const ScaledTensors t = tensors_of(model, weight.layer);
    for (const char* part : {"qweight", "weight_packed"})
      if (const ModelTensor* words = tensor_of(model, weight.layer, part); words != nullptr && is_packed_word(*words))
        return error_at(ErrorCode::format_unknown, words->stored.name,
                        "holds packed words, and neither quantization_config of config.json nor quantize_config.json "
                        "or quant_config.json says how they are packed; add the block with which the checkpoint was "
                        "published");
    if (t.codes == nullptr) return std::optional<StoredWeight>();
    TRY_VOID(check_sibling_tensors(model, weight, t));
    WeightDescription stored = weight;
    stored.shape = t.shape();
    if (stored.shape != weight.shape)
      return error_at(ErrorCode::shape_mismatch, t.codes->stored.name, "holds {}; it must be {}",
                      describe(t.codes->stored.dtype, t.codes->stored.shape), describe(weight.source, weight.shape));
    const auto spec = t.spec(stored.shape, block_);
    if (!spec) return t.misfit();
    StoredWeight found;
    found.format = is_modelopt_ ? "modelopt" : "scaled-floats";
    json::Value said;
    if (t.divides) said.set("reciprocal", true);
    if (t.factors != nullptr) said.set("pre_quant_scale", true);
    if (!said.is_null()) stored.stored = std::move(said);
    TRY(layout, checkpoint_format_named(found.format)->layout(stored, {*spec}));
    found.task.name = t.codes->stored.name;
    found.weight = std::move(stored);
    for (Component& component : layout.components) {
      const ModelTensor* tensor = component.role == Role::codes          ? t.codes
                                  : component.role == Role::scale        ? t.scale
                                  : component.role == Role::second_scale ? t.second
                                                                         : t.factors;
      found.task.components.push_back({tensor->file, tensor->stored.begin});
      if (component.role == Role::codes) continue;  // F4 as U8 is the same bytes
      set_dtype(component, tensor->stored.dtype);
      if (component.bytes != tensor->stored.end - tensor->stored.begin) return t.misfit();
    }
    found.task.layout = std::move(layout);
    return std::optional(std::move(found));
  }

 private:
  /// GPTQ's, AWQ's or compressed-tensors' codes, in a model that says of none of them that it has them.
  static bool is_packed_word(const ModelTensor& tensor) noexcept {
    return tensor.stored.dtype == StorageDtype::I32 && tensor.stored.shape.size() == 2 &&
           is_one_of(split_name(tensor.stored.name).part, {"qweight", "weight_packed"});
  }

  /// Codes are absent if LAYER.weight is not quantized.
  ScaledTensors tensors_of(const ModelIndex& model, std::string_view layer) const {
    ScaledTensors t;
    const ModelTensor* weight = tensor_of(model, layer, "weight");
    if (weight == nullptr) return t;
    for (const std::string_view name : kScaleNames)
      if (t.scale == nullptr) t.scale = tensor_of(model, layer, name);
    if (t.scale == nullptr) return t;
    t.second = tensor_of(model, layer, "weight_scale_2");
    if (t.second == nullptr) {
      t.second = tensor_of(model, layer, "weight_global_scale");
      t.divides = t.second != nullptr;
    }
    if (is_modelopt_) t.factors = tensor_of(model, layer, "pre_quant_scale");
    const StorageDtype dtype = weight->stored.dtype;
    const bool is_nvfp4_in_bytes =
        dtype == StorageDtype::U8 && t.scale->stored.dtype == StorageDtype::F8_E4M3 && t.second != nullptr;
    const bool is_modelopts = is_modelopt_ && (dtype == StorageDtype::U8 || dtype == StorageDtype::I8);
    if (small_float_of(dtype) || is_nvfp4_in_bytes || is_modelopts) t.codes = weight;
    return t;
  }

  Status check_sibling_tensors(const ModelIndex& model, const WeightDescription& weight, const ScaledTensors& t) const {
    if (const ModelTensor* branch = tensor_of(model, weight.layer, "svdquant_lora_a"))
      return error_at(ErrorCode::dtype_unsupported, branch->stored.name,
                      "is a low-rank branch that the layer adds (NVFP4_SVD), which is not decoded");
    const bool is_comfy =
        tensor_of(model, weight.layer, "comfy_quant") != nullptr || has_comfy_metadata(model, t.codes->file);
    if (is_comfy && (t.scale->stored.end - t.scale->stored.begin) * 8 > info_of(t.scale->stored.dtype).bits)
      return error_at(ErrorCode::dtype_unsupported, t.scale->stored.name,
                      "is {} of a ComfyUI model, whose block scales are in another order; only those of ComfyUI's "
                      "formats with one scale per tensor are decoded",
                      describe(t.scale->stored.dtype, t.scale->stored.shape));
    return {};
  }

  static bool has_comfy_metadata(const ModelIndex& model, uint32_t file) {
    for (const auto& [key, value] : model.metadata(file))
      if (key == "_quantization_metadata") return true;
    return false;
  }

  bool is_modelopt_;
  uint64_t block_[2] = {};  // weight_block_size
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> scaled_floats_source(const json::Value& config) {
  return std::unique_ptr<SourceFormat>(std::make_unique<ScaledFloatsSource>(config, false));
}

Result<std::unique_ptr<SourceFormat>> modelopt_source(const json::Value& config) {
  return std::unique_ptr<SourceFormat>(std::make_unique<ScaledFloatsSource>(config, true));
}

}  // namespace wasmquant
