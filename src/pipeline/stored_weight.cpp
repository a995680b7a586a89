#include "pipeline/stored_weight.h"

#include <algorithm>

#include "checkpoint/scaled_floats.h"
#include "config/config_api.h"
#include "config/layer_type.h"
#include "config/resolve.h"

namespace wasmquant {
namespace {

constexpr uint64_t kNibblesPerWord = 8;

const ModelTensor* component_tensor(const ModelIndex& model, const WeightDescription& weight, std::string_view suffix) {
  return model.find(text_of("{}.{}", weight.layer, suffix));
}

// Axis of the scales from their shape: [out, groups], [out, 1], [out], [1] or [].
void set_scheme(QuantizationSpec& spec, const std::vector<uint64_t>& scale_shape, const WeightDescription& weight,
                size_t group_axis) {
  const uint64_t columns = weight.shape.size() == 2 ? weight.shape[1] : 0;
  if (scale_shape.size() == 2 && scale_shape[group_axis] > 1 && columns % scale_shape[group_axis] == 0) {
    spec.qscheme = QScheme::per_group;
    spec.observer = ObserverId::PerGroupMinMaxObserver;
    spec.ch_axis = -1;
    spec.group_size = static_cast<int64_t>(columns / scale_shape[group_axis]);
  } else if (scale_shape.size() == 2 ||
             (scale_shape.size() == 1 && scale_shape[0] == weight.shape[0] && scale_shape[0] != 1)) {
    spec.qscheme = QScheme::per_channel;
    spec.observer = ObserverId::PerChannelMinMaxObserver;
    spec.ch_axis = 0;
  } else {
    spec.qscheme = QScheme::per_tensor;
    spec.observer = ObserverId::PerTensorMinMaxObserver;
  }
}

// Floats: how scales are stored follows from their dtype, and blocks of rows from their shape. Scales of one byte are
// of groups of a fixed size (MX 32, NVFP4 16), also where a row has only one.
void set_blocks(QuantizationSpec& spec, const StoredTensor& scale, const WeightDescription& weight) {
  if (scale.dtype == StorageDtype::U8 || scale.dtype == StorageDtype::F8_E4M3) {
    const bool is_mx = scale.dtype == StorageDtype::U8;
    spec.scale_format = is_mx ? ScaleFormat::e8m0 : ScaleFormat::e4m3;
    spec.qscheme = QScheme::per_group;
    spec.observer = ObserverId::PerBlockMXObserver;
    spec.ch_axis = -1;
    spec.group_size = is_mx ? 32 : 16;
    return;
  }
  const bool has_blocks = scale.shape.size() == 2 && weight.shape.size() == 2 && scale.shape[0] != weight.shape[0] &&
                          scale.shape[0] != 0 && scale.shape[1] != 0;
  if (!has_blocks) return;
  spec.qscheme = QScheme::per_block;
  spec.observer = ObserverId::PerBlock2DMinMaxObserver;
  spec.block_rows = static_cast<uint32_t>(weight.shape[0] / scale.shape[0]);
  spec.block_columns = static_cast<uint32_t>(weight.shape[1] / scale.shape[1]);
}

// compressed-tensors describes itself: dtype and shapes of the stored tensors say all but signedness, which does not
// change values.
Result<QuantizationSpec> compressed_tensors_spec(const ModelIndex& model, const WeightDescription& weight) {
  QuantizationSpec spec;
  const ModelTensor* packed = component_tensor(model, weight, "weight_packed");
  const ModelTensor* scale = component_tensor(model, weight, "weight_scale");
  const ModelTensor* plain = component_tensor(model, weight, "weight");
  spec.symmetric = component_tensor(model, weight, "weight_zero_point") == nullptr;
  set_scheme(spec, scale->stored.shape, weight, 1);
  if (packed != nullptr && packed->stored.dtype == StorageDtype::U8) {
    spec.dtype = Dtype::fp4;
    set_blocks(spec, scale->stored, weight);
    return spec;
  }
  if (packed != nullptr) {
    for (const Dtype dtype : {Dtype::int2, Dtype::int4, Dtype::int8}) {
      spec.dtype = dtype;
      if (packed->stored.shape.size() == 2 && weight.shape.size() == 2 &&
          packed->stored.shape[1] == packing::words_per_row(weight.shape[1], info_of(dtype).bits)) {
        return spec;
      }
    }
    return error_at(ErrorCode::shape_mismatch, packed->stored.name,
                    "its words fit neither 2, 4 nor 8 bits a code for this weight");
  }
  if (plain != nullptr && plain->stored.dtype == StorageDtype::I8) {
    spec.dtype = Dtype::int8;
    return spec;
  }
  if (plain != nullptr && plain->stored.dtype == StorageDtype::F8_E4M3) {
    spec.dtype = Dtype::fp8_e4m3;
    set_blocks(spec, scale->stored, weight);
    return spec;
  }
  return error_at(ErrorCode::dtype_unsupported, text_of("{}.weight_scale", weight.layer),
                  "stands beside no weight that compressed-tensors stores with a scale");
}

bool is_gptq_v2(const json::Value& block) { return block["checkpoint_format"].as_string() == "gptq_v2"; }

// Of AWQ and GPTQ files, what their schemes may be: other versions arrange the same names in other ways.
Status check_words(const json::Value& block) {
  const bool is_awq = block["quant_method"].as_string() == "awq";
  const int64_t bits = block["bits"].as_integer();
  if (is_awq) {
    if (bits == 4 && (!block["version"].is_string() || block["version"].as_string() == "gemm")) return {};
    return error_at(ErrorCode::format_unsupported, "/quantization_config", "awq is decoded of 4 bits, version gemm");
  }
  const bool version_2 = is_gptq_v2(block),
             version_1 = !block["checkpoint_format"].is_string() || block["checkpoint_format"].as_string() == "gptq";
  const bool is_known_width = bits == 2 || bits == 3 || bits == 4 || bits == 8;
  if (is_known_width && (version_2 || (version_1 && block["sym"].as_bool()))) return {};
  return error_at(ErrorCode::format_unsupported, "/quantization_config",
                  "gptq is decoded of 2, 3, 4 and 8 bits, symmetric in checkpoint_format gptq, and in gptq_v2");
}

QuantizationSpec words_spec(Dtype dtype, const StoredTensor& scales, const WeightDescription& weight) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = info_of(dtype).is_signed;
  spec.qscheme = QScheme::per_group;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  spec.ch_axis = -1;
  const uint64_t groups = scales.shape.empty() || scales.shape[0] == 0 ? 1 : scales.shape[0];
  spec.group_size = static_cast<int64_t>(weight.shape.empty() ? 0 : weight.shape.back() / groups);
  return spec;
}

}  // namespace

Result<StoredWeightReader> StoredWeightReader::create(std::string_view config_text) {
  StoredWeightReader reader;
  if (config_text.empty()) return reader;
  TRY(document, json::parse(config_text, json::kPython));
  const json::Value& block = document["quantization_config"];
  if (block.is_null()) return reader;
  reader.method_ = block["quant_method"].as_string();
  if (reader.method_ == "quark" || reader.method_ == "compressed-tensors") {
    auto parsed = config::parse_text(json::write(block), reader.method_);
    if (parsed)
      reader.config_ = std::move(parsed->config);
    else if (reader.method_ == "quark")  // the other one's tensors describe themselves
      return std::move(parsed.error());
  } else if (reader.method_ == "awq" || reader.method_ == "gptq") {
    TRY_VOID(check_words(block));
    reader.is_unsigned_ = reader.method_ == "awq" || is_gptq_v2(block);
    reader.bits_ = static_cast<uint32_t>(block["bits"].as_integer());
    reader.is_indexed_ = reader.method_ == "gptq" && block["desc_act"].as_bool();
  } else if (reader.method_ == "fp8") {
    const json::Array& sides = block["weight_block_size"].items();
    for (size_t i = 0; i < sides.size() && i < 2; ++i)
      reader.block_[i] = static_cast<uint64_t>(std::max<int64_t>(sides[i].as_integer(), 0));
  } else {
    return error_at(ErrorCode::format_unknown, "/quantization_config/quant_method",
                    "found \"{}\"; this version decodes compressed-tensors, quark, awq, gptq and fp8", reader.method_);
  }
  return reader;
}

Result<StoredWeight> StoredWeightReader::find(const ModelIndex& model, const WeightDescription& weight) const {
  const ModelTensor* plain = component_tensor(model, weight, "weight");
  if (method_ == "quark" && plain != nullptr && plain->stored.dtype == StorageDtype::U8) {
    // Block dtypes have no scales beside them.
    const Resolved resolved = Resolver(config_).resolve(plain->stored.name, weight.shape, true);
    if (resolved.weight.size() == 1 && info_of(resolved.weight.front().dtype).is_block())
      return locate(model, method_, weight, resolved.weight);
  }
  if (const ModelTensor* scales = component_tensor(model, weight, "scales");
      scales != nullptr && (method_ == "awq" || method_ == "gptq"))
    return locate(model, method_, weight, {words_spec(words_dtype(model, weight), scales->stored, weight)});
  if (plain != nullptr)
    if (const ModelTensor* scale = scale_of(model, *plain)) return find_scaled(model, *plain, *scale, weight);
  if (component_tensor(model, weight, "weight_scale") == nullptr) {
    if (plain == nullptr)
      return error_at(ErrorCode::tensor_missing, text_of("{}.weight", weight.layer), "is not in the quantized model");
    if (!is_quantizable(plain->stored.dtype, plain->stored.shape)) {
      return error_at(ErrorCode::dtype_unsupported, plain->stored.name, "holds {} without a scale",
                      info_of(plain->stored.dtype).name);
    }
    WeightDescription stored = weight;
    stored.source = plain->stored.dtype;
    return locate(model, "fake-quantized", stored, {QuantizationSpec{}});
  }
  if (method_ == "quark") {
    const Resolved resolved = Resolver(config_).resolve(text_of("{}.weight", weight.layer), weight.shape, true);
    if (resolved.weight.empty())
      return error_at(ErrorCode::config_invalid, weight.layer,
                      "has a scale, but quantization_config does not quantize it");
    if (resolved.weight.size() > 1) return locate(model, method_, weight, resolved.weight);
    QuantizationSpec spec = resolved.weight.front();
    const DtypeInfo& dtype = info_of(spec.dtype);
    const bool says_all = !dtype.is_integer || spec.scale_format != ScaleFormat::float32;  // the config, to the letter
    const bool transposed = dtype.is_integer && dtype.bits != 3;
    if (!says_all)
      set_scheme(spec, component_tensor(model, weight, "weight_scale")->stored.shape, weight, transposed ? 0 : 1);
    return locate(model, method_, weight, {spec});
  }
  TRY(spec, compressed_tensors_spec(model, weight));
  return locate(model, "compressed-tensors", weight, {spec});
}

const ModelTensor* StoredWeightReader::scale_of(const ModelIndex& model, const ModelTensor& weight) const {
  if (!method_.empty() && method_ != "fp8") return nullptr;  // these have their own
  const std::string_view name = weight.stored.name;
  if (!small_float_of(weight.stored.dtype) || !name.ends_with(".weight")) return nullptr;
  for (const std::string_view scale : kScaleNames)
    if (const ModelTensor* found = model.find(text_of("{}.{}", name.substr(0, name.rfind('.')), scale))) return found;
  return nullptr;
}

bool StoredWeightReader::has_scaled_floats(const ModelIndex& model) const {
  for (const ModelTensor& tensor : model.tensors())
    if (scale_of(model, tensor) != nullptr) return true;
  return false;
}

Result<StoredWeight> StoredWeightReader::find_scaled(const ModelIndex& model, const ModelTensor& plain,
                                                     const ModelTensor& scale, const WeightDescription& weight) const {
  const StoredTensor &codes = plain.stored, &scales = scale.stored;
  const auto spec = scaled_floats_spec(codes.dtype, codes.shape, scales.dtype, scales.shape, block_);
  for (const std::string_view second : {"weight_scale_2", "weight_global_scale"})
    if (!spec || model.find(text_of("{}.{}", weight.layer, second)) != nullptr)
      return error_at(ErrorCode::dtype_unsupported, scales.name,
                      "{} does not go with {} of {q}: decoded are float32, float16, bfloat16 and F8_E8M0 scales per "
                      "tensor, row, group and block",
                      describe(scales.dtype, scales.shape), describe(codes.dtype, codes.shape), codes.name);
  StoredWeight found;
  found.format = "scaled-floats";
  WeightDescription stored = weight;
  stored.shape = codes.shape;
  TRY(layout, checkpoint_format_named(found.format)->layout(stored, {*spec}));
  found.task.name = codes.name;
  found.task.layout = std::move(layout);
  set_dtype(found.task.layout.components.back(), scales.dtype);
  found.task.components.push_back({plain.file, codes.begin});
  found.task.components.push_back({scale.file, scales.begin});
  return found;
}

// The words of AWQ lie along [out], those of GPTQ along [in]; in GPTQ layers may differ in bits.
Dtype StoredWeightReader::words_dtype(const ModelIndex& model, const WeightDescription& weight) const {
  if (method_ == "awq") return Dtype::uint4;
  const ModelTensor* words = component_tensor(model, weight, "qweight");
  constexpr Dtype kSigned[] = {Dtype::int2, Dtype::int3, Dtype::int4, Dtype::int8};
  constexpr Dtype kUnsigned[] = {Dtype::uint2, Dtype::uint3, Dtype::uint4, Dtype::uint8};
  for (size_t i = 0; words != nullptr && i < std::size(kSigned); ++i)
    if (!words->stored.shape.empty() && !weight.shape.empty() &&
        words->stored.shape[0] == packing::words_per_row(weight.shape.back(), info_of(kSigned[i]).bits))
      return is_unsigned_ ? kUnsigned[i] : kSigned[i];
  return is_unsigned_ ? Dtype::uint4 : Dtype::int4;
}

List<std::vector<uint64_t>> StoredWeightReader::possible_shapes(const StoredTensor& codes,
                                                                std::string_view layer) const {
  List<std::vector<uint64_t>> shapes;
  const std::vector<uint64_t>& stored = codes.shape;
  shapes.push_back(stored);
  if (stored.size() != 2) return shapes;
  const uint64_t rows = stored[0], columns = stored[1];
  if (method_ == "awq") return {{kNibblesPerWord * columns, rows}};
  if (method_ == "gptq") {  // layers may differ in bits; g_idx, which has a number for each input, tells
    shapes = {};
    for (const uint64_t bits : {bits_, 4u, 8u, 2u, 3u}) shapes.push_back({columns, rows * 32 / bits});
    return shapes;
  }
  if (method_ == "quark") {  // codes per stored element: bytes; fp4; words of 4 bits; fp6, mx6; int3; mx9, bfp16
    constexpr struct { uint64_t codes, elements; } kFactors[] = {{1, 1}, {2, 1}, {8, 1}, {4, 3}, {8, 3}, {8, 9}};
    for (const auto& factor : kFactors) {
      shapes.push_back({rows, columns * factor.codes / factor.elements});
      shapes.push_back({columns * factor.codes / factor.elements, rows});
    }
    return shapes;
  }
  if (codes.dtype == StorageDtype::U8) return {{rows, 2 * columns}};
  if (codes.dtype != StorageDtype::I32) return shapes;
  const Resolved resolved = Resolver(config_).resolve(text_of("{}.weight", layer), stored, true);
  if (resolved.weight.empty()) return {};
  return {{rows, columns * (32 / info_of(resolved.weight.front().dtype).bits)}};
}

bool StoredWeightReader::is_scale_of_floats(const ModelIndex& model, std::string_view layer,
                                            std::string_view part) const {
  const ModelTensor* weight = model.find(text_of("{}.weight", layer));
  if (weight == nullptr || scale_of(model, *weight) == nullptr) return false;
  return part == "input_scale" || part == "activation_scale" ||
         std::find(std::begin(kScaleNames), std::end(kScaleNames), part) != std::end(kScaleNames);
}

List<OriginalTensor> StoredWeightReader::originals(const ModelIndex& model) const {
  List<OriginalTensor> out;
  for (const ModelTensor& tensor : model.tensors()) {
    const StoredTensor& stored = tensor.stored;
    const std::string_view name = stored.name;
    const std::string_view layer = name.substr(0, std::min(name.rfind('.'), name.size()));
    const std::string_view part = layer.size() < name.size() ? name.substr(layer.size() + 1) : std::string_view();
    const bool is_scaled = part == "weight" && method_ != "fp8" &&
                           (model.find(text_of("{}.weight_scale", layer)) != nullptr || !is_quantizable(stored.dtype));
    if (scale_of(model, tensor) != nullptr) {
      out.push_back({stored.name,
                     {std::string(layer), tensor.layer_type, stored.shape, StorageDtype::F32, pack_method()},
                     nullptr});
    } else if (is_scale_of_floats(model, layer, part)) {
      continue;  // with the weight
    } else if (is_quantized() && method_ != "fp8" && (part == "weight_packed" || part == "qweight" || is_scaled)) {
      OriginalTensor original;
      original.name = text_of("{}.weight", layer);
      for (std::vector<uint64_t>& shape : possible_shapes(stored, layer)) {
        if (!original.weight.shape.empty()) break;
        WeightDescription weight{std::string(layer), std::string(layer_type_of(original.name, shape)), shape,
                                 StorageDtype::F32, pack_method()};
        if (find(model, weight)) original.weight = std::move(weight);
      }
      if (original.weight.shape.empty()) original.weight.layer = layer;
      out.push_back(std::move(original));
    } else if (!is_quantized() || method_ == "fp8" || part == "weight" || part == "bias") {
      out.push_back({stored.name,
                     {std::string(layer_name_of(name).layer), tensor.layer_type, stored.shape, stored.dtype},
                     &tensor});
    }
  }
  return out;
}

Result<StoredWeight> StoredWeightReader::locate(const ModelIndex& model, std::string_view format,
                                                const WeightDescription& weight, const Stages& stages) const {
  StoredWeight found;
  found.format = format;
  TRY(layout, checkpoint_format_named(format)->layout(weight, stages));
  found.task.name = text_of("{}.weight", weight.layer);
  layout.reads_group_index = is_indexed_ && layout.codes == CodeStorage::columns_words;
  for (Component& component : layout.components) {
    const ModelTensor* tensor = model.find(component.name);
    if (tensor == nullptr && is_known(component.role) && !layout.reads_group_index) {
      found.task.components.push_back({});
      continue;
    }
    if (tensor == nullptr) return error_at(ErrorCode::tensor_missing, component.name, "is not in the quantized model");
    const bool any_float =
        component.role == Role::scale && is_quantizable(tensor->stored.dtype) && !small_float_of(tensor->stored.dtype);
    if (tensor->stored.shape != component.shape || (tensor->stored.dtype != component.dtype && !any_float)) {
      return error_at(ErrorCode::shape_mismatch, component.name, "holds {}; {} stores {} for this weight",
                      describe(tensor->stored.dtype, tensor->stored.shape), format,
                      describe(component.dtype, component.shape));
    }
    set_dtype(component, tensor->stored.dtype);
    found.task.components.push_back({tensor->file, tensor->stored.begin});
  }
  found.task.layout = std::move(layout);
  return found;
}

}  // namespace wasmquant
