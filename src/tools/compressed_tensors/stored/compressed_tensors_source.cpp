// compressed-tensors: stored dtypes and shapes tell the scheme, the config the width of codes in words.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "config/config_text.h"
#include "config/resolve/resolve.h"
#include "pipeline/stored/scale_scheme.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {
namespace {

constexpr std::string_view kCompressedTensors = "compressed-tensors";

// Floats: the scale's dtype gives the scale format, its shape the blocks of rows. One-byte scales cover groups of a
// fixed size (MX 32, NVFP4 16), even if a row has only one.
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

// The config's blocks where they give scales of that shape: the last ones may be cut, and then their shapes do not
// tell, nor where a weight has one row of blocks.
void set_configured_blocks(QuantizationSpec& spec, const Stages& configured, const StoredTensor& scale,
                           const WeightDescription& weight) {
  if (configured.empty() || configured.front().qscheme != QScheme::per_block) return;
  const uint64_t rows = configured.front().block_rows, columns = configured.front().block_columns;
  if (rows == 0 || columns == 0 || weight.shape.size() != 2 || scale.shape.size() != 2) return;
  const auto blocks = [](uint64_t length, uint64_t block) { return length / block + (length % block != 0); };
  if (blocks(weight.shape[0], rows) != scale.shape[0] || blocks(weight.shape[1], columns) != scale.shape[1]) return;
  spec.qscheme = QScheme::per_block;
  spec.observer = ObserverId::PerBlock2DMinMaxObserver;
  spec.block_rows = configured.front().block_rows;
  spec.block_columns = configured.front().block_columns;
}

Dtype signed_integer(uint32_t bits) {
  static_assert(static_cast<uint32_t>(Dtype::int8) - static_cast<uint32_t>(Dtype::int2) == 6);
  return static_cast<Dtype>(static_cast<uint32_t>(Dtype::int2) + std::max(bits, 2u) - 2);
}

// Releases before 0.18 began a code anew in each word; since then a row is one bit stream, under the same name.
bool is_before_streams(const json::Value& block) {
  std::string_view version = block["version"].as_string();
  uint32_t parts[2] = {1, 0};
  for (uint32_t& part : parts) {
    const size_t dot = std::min(version.find('.'), version.size());
    if (std::from_chars(version.data(), version.data() + dot, part).ec != std::errc()) return false;
    version.remove_prefix(std::min(dot + 1, version.size()));
  }
  return parts[0] == 0 && parts[1] < 18;
}

// LAYER.weight_shape, two int64; nullopt if its bytes were not read (ModelIndex::inline_tensors).
std::optional<std::vector<uint64_t>> stored_shape(const ModelIndex& model, std::string_view layer) {
  const auto bytes = model.inline_bytes(text_of("{}.weight_shape", layer));
  if (!bytes || bytes->size() != 16) return std::nullopt;
  std::vector<uint64_t> shape(2);
  std::memcpy(shape.data(), bytes->data(), bytes->size());
  return shape;
}

// Where weight_shape is not read: as many columns as the groups of the config have. Empty if nothing tells.
std::vector<uint64_t> shape_of_groups(const ModelIndex& model, std::string_view layer, const json::Value& arguments,
                                      uint64_t rows) {
  const ModelTensor* const scale = tensor_of(model, layer, "weight_scale");
  const uint64_t groups = scale != nullptr && scale->stored.shape.size() == 2 ? scale->stored.shape[1] : 0;
  const int64_t size = arguments["group_size"].as_integer();
  uint64_t columns = 0;
  if (size <= 0 || groups == 0 || __builtin_mul_overflow(groups, static_cast<uint64_t>(size), &columns)) return {};
  return {rows, columns};
}

// What says how the weights are stored: targets and `weights` of groups. Which layers have codes is seen in the tensors,
// so that an entry of `ignore` that cannot be matched does no harm.
json::Value of_weights(const json::Value& block) {
  json::Value own = block;
  json::Array usable;
  for (const json::Value& entry : block["ignore"].items())
    if (is_usable_pattern(entry.as_string())) usable.push_back(entry);
  if (!block["ignore"].is_null()) own.set("ignore", std::move(usable));
  for (const char* key : {"kv_cache_scheme", "sparsity_config", "transform_config"})
    if (!block[key].is_null()) own.set(key, nullptr);
  for (auto& [name, group] : own.member("config_groups").members()) {
    for (const char* side : {"input_activations", "output_activations"})
      if (group.is_object()) group.set(side, nullptr);
    // Codes of one bit are a dtype of no config.
    if (group["weights"]["num_bits"].as_integer() == 1) group.member("weights").set("num_bits", 2);
  }
  return own;
}

class CompressedTensorsSource final : public SourceFormat {
 public:
  CompressedTensorsSource(Config config, json::Value block)
      : config_(std::move(config)), block_(std::move(block)), is_before_streams_(is_before_streams(block_)) {}

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    if (split_name(tensor.stored.name).part == "weight_packed") return StoredRole::codes;
    return use_in_scaled_weight(model, tensor);
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const std::vector<uint64_t>& stored = codes.stored.shape;
    if (stored.size() != 2) return {stored};
    if (codes.stored.dtype == StorageDtype::U8) return {{stored[0], 2 * stored[1]}};
    if (codes.stored.dtype != StorageDtype::I32) return {stored};
    const std::string_view layer = split_name(codes.stored.name).layer;
    if (auto shape = stored_shape(model, layer);
        shape && (*shape)[0] == stored[0] && (*shape)[1] <= 32 * stored[1])  // 32 codes of 1 bit
      return {std::move(*shape)};
    return {shape_of_groups(model, layer, arguments_of(layer), stored[0]), {}};
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    const ModelTensor* const scale = tensor_of(model, weight.layer, "weight_scale");
    if (scale == nullptr) return std::optional<StoredWeight>();
    if (const auto shape = stored_shape(model, weight.layer); shape && *shape != weight.shape)
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight_shape", weight.layer),
                      "says [{}, {}], which is not the shape of the weight that {}.weight_packed holds", (*shape)[0],
                      (*shape)[1], weight.layer);
    if (weight.shape.empty())
      return error_at(ErrorCode::tensor_missing, text_of("{}.weight_shape", weight.layer),
                      "is not in the model, and nothing else says how many columns the words of {}.weight_packed hold",
                      weight.layer);
    const json::Value& arguments = arguments_of(weight.layer);
    WeightDescription described = weight;
    described.is_unpacked = tensor_of(model, weight.layer, "weight") != nullptr;
    described.is_reordered = tensor_of(model, weight.layer, "weight_g_idx") != nullptr;
    described.is_stored = true;
    TRY(spec, spec_of(model, described, arguments));
    if (spec.dtype == Dtype::fp8_e4m3 && spec.scale_format == ScaleFormat::float32)
      set_configured_blocks(spec, resolver_.resolve_weight(weight.layer, weight.layer_type).weight, scale->stored,
                            weight);
    TRY_VOID(check_parts(spec, arguments, weight, described.is_reordered));
    TRY(found, locate(model, kCompressedTensors, described, {spec}, described.is_reordered));
    return std::optional(std::move(found));
  }

  PackMethod pack_method() const noexcept override { return config_.export_info.value_or(ExportInfo{}).pack_method; }

 private:
  // `weights` of the group in config_groups that the layer belongs to: the one that names it, or the only one.
  const json::Value& arguments_of(std::string_view layer) const {
    const json::Object& groups = block_["config_groups"].members();
    if (groups.size() == 1) return groups[0].second["weights"];
    const std::string where = resolver_.resolve_weight(layer, "Linear").reason.where + '/';
    const json::Value* found = nullptr;
    for (const auto& [name, group] : groups)
      if (where.find(text_of("/config_groups/{}/", json::pointer_token(name))) != std::string::npos) found = &group;
    static const json::Value kNone;
    return found == nullptr ? kNone : (*found)["weights"];
  }

  Result<QuantizationSpec> spec_of(const ModelIndex& model, WeightDescription& weight,
                                   const json::Value& arguments) const {
    QuantizationSpec spec;
    const ModelTensor* packed = tensor_of(model, weight.layer, "weight_packed");
    const ModelTensor* scale = tensor_of(model, weight.layer, "weight_scale");
    const ModelTensor* plain = tensor_of(model, weight.layer, "weight");
    spec.symmetric = tensor_of(model, weight.layer, "weight_zero_point") == nullptr;
    set_scheme(spec, scale->stored.shape, weight, {});
    if (packed != nullptr && packed->stored.dtype == StorageDtype::U8) {
      spec.dtype = Dtype::fp4;
      set_blocks(spec, scale->stored, weight);
      return spec;
    }
    if (packed != nullptr) {
      TRY(bits, bits_of_words(packed->stored, weight, arguments));
      spec.dtype = signed_integer(bits);
      return spec;
    }
    const bool says_float = arguments["type"].as_string() == "float";
    if (plain != nullptr && !arguments.is_null() && says_float != small_float_of(plain->stored.dtype).has_value())
      return error_at(ErrorCode::dtype_unsupported, plain->stored.name, "holds {}; config.json says type {}",
                      describe(plain->stored.dtype, plain->stored.shape), says_float ? "float" : "int");
    if (plain != nullptr && plain->stored.dtype == StorageDtype::I8) {
      spec.dtype = Dtype::int8;
      return spec;
    }
    if (plain != nullptr && plain->stored.dtype == StorageDtype::F8_E4M3) {
      spec.dtype = Dtype::fp8_e4m3;
      set_blocks(spec, scale->stored, weight);
      return spec;
    }
    return error_at(ErrorCode::dtype_unsupported, scale->stored.name,
                    "belongs to no weight that compressed-tensors stores with a scale");
  }

  // Bits of a code, which the config says; `weight` is told where each word begins with a code.
  Result<uint32_t> bits_of_words(const StoredTensor& packed, WeightDescription& weight,
                                 const json::Value& arguments) const {
    const int64_t said = arguments["num_bits"].is_null() ? 8 : arguments["num_bits"].as_integer();
    if (arguments.is_null() || said < 1 || said > 8 || arguments["type"].as_string() == "float")
      return error_at(ErrorCode::shape_mismatch, packed.name,
                      "holds words of integers, and config_groups of config.json names no width of 1 to 8 bits for "
                      "them");
    const auto bits = static_cast<uint32_t>(said);
    const uint64_t columns = weight.shape.size() == 2 ? weight.shape[1] : 0;
    const uint64_t stream = packing::words_per_row(columns, bits), whole = packing::whole_words_per_row(columns, bits);
    const uint64_t count = packed.shape.size() == 2 ? packed.shape[1] : 0;
    if (columns == 0 || (count != stream && count != whole))
      return error_at(ErrorCode::shape_mismatch, packed.name,
                      "holds {}; codes of {} bits, as config.json says, fill {} words a row for {} columns, or {} as "
                      "compressed-tensors cut them before 0.18",
                      describe(packed.dtype, packed.shape), bits, stream, columns, whole);
    const bool is_old = 32 % bits != 0 && columns > 32 / bits && (count != stream || is_before_streams_);
    if (bits == 1 || (is_old && count == whole)) {
      json::Value words;
      words.set("whole_words", uint64_t{bits});
      weight.stored = std::move(words);
    }
    return uint32_t{bits};
  }

  // What the config says there is, has to be there.
  static Status check_parts(const QuantizationSpec& spec, const json::Value& arguments, const WeightDescription& weight,
                            bool is_reordered) {
    const auto missing = [&](const char* part) {
      return error_at(ErrorCode::tensor_missing, text_of("{}.{}", weight.layer, part),
                      "is not in the model, and config.json says that the weight has it");
    };
    const bool is_integer = info_of(spec.dtype).is_integer;
    if (is_integer && spec.symmetric && arguments["symmetric"].is_bool() && !arguments["symmetric"].as_bool())
      return missing("weight_zero_point");
    const json::Value& order = arguments["actorder"];
    if (is_integer && !is_reordered && (order.as_bool() || order.as_string() == "group"))
      return missing("weight_g_idx");
    const int64_t size = arguments["group_size"].as_integer();
    const bool has_groups = is_integer && spec.qscheme == QScheme::per_group && size > 0 && size != spec.group_size;
    if (has_groups && static_cast<uint64_t>(size) < weight.shape.back())
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight_scale", weight.layer),
                      "has scales of groups of {}; config.json says groups of {}", spec.group_size, size);
    return {};
  }

  Config config_;
  mutable Resolver resolver_{config_};  // it counts what it is asked
  json::Value block_;
  bool is_before_streams_;
};

// Transforms that the loader applies while the model runs; those of weights are in the weights.
Status check_transforms(const json::Value& block) {
  for (const auto& [name, group] : block["transform_config"]["config_groups"].members())
    for (const json::Value& applied : group["apply"].items())
      if (!applied["location"].as_string().starts_with("weight_"))
        return error_at(
            ErrorCode::format_unsupported,
            text_of("/quantization_config/transform_config/config_groups/{}", json::pointer_token(name)),
            "found a transform ({q}) that runtimes apply to {q} of layers while the model runs: the weights "
            "were made for it, and no output can declare it; start from the checkpoint that this one was "
            "made from",
            group["type"].as_string(), applied["location"].as_string());
  return {};
}

// Sparse weights have a bitmask or marlin's order of words.
Status check_storage(const json::Value& block) {
  const std::string& sparsity = block["sparsity_config"]["format"].as_string();
  if (!sparsity.empty() && sparsity != "dense")
    return error_at(ErrorCode::format_unsupported, "/quantization_config/sparsity_config/format",
                    "found {q}: sparse weights are not decoded; start from the checkpoint that this one was made from",
                    sparsity);
  const auto check = [](const json::Value& format, const std::string& where) -> Status {
    constexpr std::string_view kKnown =
        "|dense|int-quantized|float-quantized|naive-quantized|pack-quantized|nvfp4-pack-quantized|"
        "mxfp4-pack-quantized|mxfp8-quantized|mixed-precision|";
    if (format.is_null() || kKnown.find(text_of("|{}|", format.as_string())) != std::string_view::npos) return {};
    return error_at(ErrorCode::format_unsupported, where, "found {q}; of compressed-tensors {} are decoded",
                    format.as_string(), "int-, float-, pack-, nvfp4-pack-, mxfp4-pack- and mxfp8-quantized");
  };
  TRY_VOID(check(block["format"], "/quantization_config/format"));
  for (const auto& [name, group] : block["config_groups"].members())
    TRY_VOID(
        check(group["format"], text_of("/quantization_config/config_groups/{}/format", json::pointer_token(name))));
  return {};
}

}  // namespace

Result<std::unique_ptr<SourceFormat>> compressed_tensors_source(const json::Value& block) {
  TRY_VOID(check_transforms(block));
  TRY_VOID(check_storage(block));
  Config config;  // without groups, shapes tell what they can
  if (!block["config_groups"].is_null() && !(block["config_groups"] == json::Value(json::Object()))) {
    TRY(parsed, config::parse_value(of_weights(block), kCompressedTensors));
    config = std::move(parsed.config);
  }
  return std::unique_ptr<SourceFormat>(std::make_unique<CompressedTensorsSource>(std::move(config), block));
}

}  // namespace wasmquant
