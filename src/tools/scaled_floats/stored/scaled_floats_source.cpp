// Floats of 8 and 4 bits with scales (names: checkpoint/scaled_floats.h), in models whose config.json says fp8,
// fbgemm_fp8 or nothing, and in NVIDIA ModelOpt's exports, which also have integers.
#include <algorithm>

#include "pipeline/model_index/storage_facts.h"
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

/// Two e2m1 codes of a row in a signed byte, as DeepSeek V4 stores its experts: groups of 32, that is 16 bytes.
bool is_fp4_in_i8(const ModelTensor& codes, const ModelTensor& scale) noexcept {
  const std::vector<uint64_t>&bytes = codes.stored.shape, &scales = scale.stored.shape;
  return codes.stored.dtype == StorageDtype::I8 && scale.stored.dtype == StorageDtype::F8_E8M0 && !bytes.empty() &&
         bytes.size() == scales.size() && bytes.back() == 16 * scales.back();
}

/// A weight's codes and their parameters.
struct ScaledTensors {
  const ModelTensor *codes = nullptr, *scale = nullptr;
  const ModelTensor* second = nullptr;   // of NVFP4
  bool divides = false;                  // by the second scale
  const ModelTensor* factors = nullptr;  // pre_quant_scale

  /// int4 with scales next to bytes: each byte has two rows.
  bool has_row_pairs() const noexcept { return codes->stored.dtype == StorageDtype::U8 && is_float(*scale); }

  /// fp4 in bytes: two codes of a row in each.
  bool has_pairs() const noexcept {
    return (codes->stored.dtype == StorageDtype::U8 && !has_row_pairs()) || is_fp4_in_i8(*codes, *scale);
  }

  std::vector<uint64_t> shape() const {
    std::vector<uint64_t> shape = codes->stored.shape;
    if (shape.empty()) return shape;
    if (has_row_pairs()) shape.front() *= 2;
    if (has_pairs()) shape.back() *= 2;
    return shape;
  }

  /// The spec of `matrix`; nullopt if codes and scales do not go together.
  std::optional<QuantizationSpec> spec(const ScaledMatrix& matrix) const {
    std::optional<Dtype> dtype = has_pairs() ? Dtype::fp4 : small_float_of(codes->stored.dtype);
    if (!dtype && is_float(*scale)) dtype = has_row_pairs() ? Dtype::int4 : Dtype::int8;
    if (!dtype) return std::nullopt;
    auto spec = scaled_floats_spec(*dtype, matrix.shape, scale->stored.dtype, matrix.scale_shape, matrix.block);
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

// GPTQ's, AWQ's or compressed-tensors' codes, in a model that says of none of them that it has them.
bool is_packed_word(const ModelTensor& tensor) noexcept {
  return tensor.stored.dtype == StorageDtype::I32 && tensor.stored.shape.size() == 2 &&
         is_one_of(split_name(tensor.stored.name).part, {"qweight", "weight_packed"});
}

// ComfyUI's sign that weights of the file are scaled.
bool is_comfy_marker(const ModelTensor& tensor) noexcept {
  return split_name(tensor.stored.name).part == "scaled_fp8" && small_float_of(tensor.stored.dtype) &&
         tensor.stored.end - tensor.stored.begin <= 2;
}

// Whether `tensor` is of the weight that `t` describes; `part`: its name after the weight's.
bool is_part_of(const ScaledTensors& t, const ModelTensor& tensor, std::string_view part) {
  if (t.codes == nullptr) return false;
  return &tensor == t.scale || &tensor == t.second || &tensor == t.factors || part == "comfy_quant" ||
         is_of_activations(part);
}

// The weight LAYER.weight, or the parameter LAYER. Codes are absent if it is not quantized.
const ModelTensor* scale_of(const ModelIndex& model, std::string_view layer, bool is_parameter) {
  for (const std::string_view name : kScaleNames)
    if (const ModelTensor* scale = tensor_of(model, layer, name); scale != nullptr && !is_parameter) return scale;
  for (const char* ending : {"_scale", "_scale_inv"})
    if (const ModelTensor* scale = model.find(text_of("{}{}", layer, ending)); scale != nullptr && is_parameter)
      return scale;
  return nullptr;
}

bool is_quantizable_as_is(const ModelTensor& tensor) noexcept {
  return is_quantizable(tensor.stored.dtype) && !small_float_of(tensor.stored.dtype);
}

// What LAYER.comfy_quant says, JSON such as {"format": "float8_e4m3fn"}; null without it.
json::Value comfy_quant_of(const ModelIndex& model, std::string_view layer) {
  const auto text = model.inline_bytes(text_of("{}.comfy_quant", layer));
  auto said = text ? json::parse(*text) : Result<json::Value>(json::Value());
  return said ? std::move(*said) : json::Value();
}

std::string comfy_format(const ModelIndex& model, std::string_view layer) {
  return comfy_quant_of(model, layer)["format"].as_string();
}

bool has_comfy_metadata(const ModelIndex& model, uint32_t file) {
  for (const auto& [key, value] : model.metadata(file))
    if (key == "_quantization_metadata") return true;
  return false;
}

class ScaledFloatsSource final : public SourceFormat {
 public:
  ScaledFloatsSource(const json::Value& config, bool is_modelopt) : is_modelopt_(is_modelopt), config_(config) {
    const json::Array& sides = config["weight_block_size"].items();
    for (size_t i = 0; i < sides.size() && i < 2; ++i)
      block_[i] = static_cast<uint64_t>(std::max<int64_t>(sides[i].as_integer(), 0));
  }

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const std::string_view name = tensor.stored.name;
    const auto [layer, part] = split_name(name);
    if (is_packed_word(tensor)) return StoredRole::codes;  // which find() refuses
    if (tensors_of(model, part == "weight" ? layer : name).codes == &tensor) return StoredRole::codes;
    if (is_modelopt_ && is_one_of(part, {"k_scale", "v_scale", "k_bias", "v_bias"}) && tensor.stored.shape.size() < 2)
      return StoredRole::part;  // of the key-value cache; a projection's bias is named k_proj.bias
    if (is_comfy_marker(tensor)) return StoredRole::part;
    if (is_part_of(tensors_of(model, layer), tensor, part)) return StoredRole::part;
    for (size_t at = name.find('_', name.size() - part.size()); at != std::string_view::npos;
         at = name.find('_', at + 1))
      if (is_part_of(tensors_of(model, name.substr(0, at)), tensor, name.substr(at + 1))) return StoredRole::part;
    return StoredRole::plain;
  }

  std::string weight_name(const ModelTensor& codes) const override {
    return is_packed_word(codes) ? SourceFormat::weight_name(codes) : codes.stored.name;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const auto [layer, part] = split_name(codes.stored.name);
    const ScaledTensors t = tensors_of(model, part == "weight" ? layer : std::string_view(codes.stored.name));
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
    if (t.shape() != weight.shape)
      return error_at(ErrorCode::shape_mismatch, t.codes->stored.name, "holds {}; it must be {}",
                      describe(t.codes->stored.dtype, t.codes->stored.shape), describe(weight.source, weight.shape));
    const auto matrix = scaled_matrix(weight.shape, t.scale->stored.shape, block_);
    const auto spec = matrix ? t.spec(*matrix) : std::nullopt;
    if (!spec) return t.misfit();
    StoredWeight found;
    found.format = is_modelopt_ || t.factors != nullptr ? "modelopt" : "scaled-floats";
    found.weight = weight;
    WeightDescription stored = weight;
    stored.shape = matrix->shape;
    json::Value said;
    if (t.divides) said.set("reciprocal", true);
    if (t.factors != nullptr) said.set("pre_quant_scale", true);
    if (!said.is_null()) stored.stored = std::move(said);
    TRY(layout, checkpoint_format_named(found.format)->layout(stored, {*spec}));
    layout.shape = weight.shape;
    found.task.name = t.codes->stored.name;
    found.weight.stored = std::move(stored.stored);
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
  ScaledTensors tensors_of(const ModelIndex& model, std::string_view layer) const {
    ScaledTensors t;
    const ModelTensor* weight = tensor_of(model, layer, "weight");
    const bool is_parameter = weight == nullptr;
    if (is_parameter) weight = model.find(layer);
    if (weight == nullptr || is_quantizable_as_is(*weight)) return t;
    t.scale = scale_of(model, layer, is_parameter);
    if (t.scale == nullptr) return t;
    t.second = tensor_of(model, layer, "weight_scale_2");
    if (t.second == nullptr) {
      t.second = tensor_of(model, layer, "weight_global_scale");
      t.divides = t.second != nullptr;
    }
    t.factors = tensor_of(model, layer, "pre_quant_scale");
    const StorageDtype dtype = weight->stored.dtype;
    const bool is_nvfp4_in_bytes =
        dtype == StorageDtype::U8 && t.scale->stored.dtype == StorageDtype::F8_E4M3 && t.second != nullptr;
    const bool is_modelopts = is_modelopt_ && (dtype == StorageDtype::U8 || dtype == StorageDtype::I8);
    const bool is_comfys_int8 = dtype == StorageDtype::I8 && comfy_format(model, layer) == "int8_tensorwise";
    if (small_float_of(dtype) || is_nvfp4_in_bytes || is_modelopts || is_comfys_int8 || is_fp4_in_i8(*weight, *t.scale))
      t.codes = weight;
    return t;
  }

  Status check_sibling_tensors(const ModelIndex& model, const WeightDescription& weight, const ScaledTensors& t) const {
    if (const ModelTensor* branch = tensor_of(model, weight.layer, "svdquant_lora_a"))
      return error_at(ErrorCode::dtype_unsupported, branch->stored.name,
                      "is a low-rank branch that the layer adds (NVFP4_SVD), which is not decoded");
    const bool is_integer = t.codes->stored.dtype == StorageDtype::I8 ? !t.has_pairs() : t.has_row_pairs();
    const std::string& algorithm = algorithm_of(weight.layer);
    const bool says_float =
        algorithm.starts_with("FP8") || algorithm.starts_with("NVFP4") || algorithm.starts_with("MXFP");
    if (is_integer && says_float)
      return error_at(ErrorCode::dtype_unsupported, t.codes->stored.name,
                      "holds {} with a float scale, which are integers; its quant_algo is {}",
                      describe(t.codes->stored.dtype, t.codes->stored.shape), algorithm);
    const json::Value said = comfy_quant_of(model, weight.layer);
    if (said["convrot"].as_bool())
      return error_at(
          ErrorCode::dtype_unsupported, text_of("{}.comfy_quant", weight.layer),
          "says convrot: the weight was rotated before it was rounded, which is not decoded; start from the "
          "checkpoint that this one was made from");
    const bool is_comfy = !said.is_null() || tensor_of(model, weight.layer, "comfy_quant") != nullptr ||
                          has_comfy_metadata(model, t.codes->file);
    const bool has_rows = t.codes->stored.dtype == StorageDtype::I8;
    if (is_comfy && !has_rows &&
        (t.scale->stored.end - t.scale->stored.begin) * 8 > info_of(t.scale->stored.dtype).bits)
      return error_at(ErrorCode::dtype_unsupported, t.scale->stored.name,
                      "is {} of a ComfyUI model, whose block scales are in another order; only those of ComfyUI's "
                      "formats with one scale per tensor or per row of int8 are decoded",
                      describe(t.scale->stored.dtype, t.scale->stored.shape));
    return {};
  }

  /// ModelOpt's word for how the layer is quantized; "" if it says none.
  const std::string& algorithm_of(std::string_view layer) const {
    const json::Value* const own = config_["quantized_layers"].find(layer);
    return own != nullptr ? (*own)["quant_algo"].as_string() : config_["quant_algo"].as_string();
  }

  bool is_modelopt_;
  json::Value config_;
  uint64_t block_[2] = {};  // weight_block_size
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> scaled_floats_source(const json::Value& config) {
  const json::Value& block = config["weight_block_size"];
  const bool are_sides =
      block.items().size() == 2 && std::all_of(block.items().begin(), block.items().end(),
                                               [](const json::Value& side) { return side.as_integer() > 0; });
  if (!block.is_null() && !are_sides)
    return error_at(ErrorCode::config_invalid, "/quantization_config/weight_block_size",
                    "found {}; expected two sizes, such as [128, 128], or null", json::write(block));
  return std::unique_ptr<SourceFormat>(std::make_unique<ScaledFloatsSource>(config, false));
}

Result<std::unique_ptr<SourceFormat>> modelopt_source(const json::Value& config) {
  return std::unique_ptr<SourceFormat>(std::make_unique<ScaledFloatsSource>(config, true));
}

}  // namespace wasmquant
