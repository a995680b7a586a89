// compressed-tensors: stored dtypes and shapes tell all but signedness, which does not change values.
#include <algorithm>
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

// Bits that the codes of words can have, the usual ones first.
constexpr uint32_t kWordBits[] = {2, 4, 8, 3, 5, 6, 7};

Dtype signed_integer(uint32_t bits) {
  static_assert(static_cast<uint32_t>(Dtype::int8) - static_cast<uint32_t>(Dtype::int2) == 6);
  return static_cast<Dtype>(static_cast<uint32_t>(Dtype::int2) + bits - 2);
}

// Bits that the config gives the weight; 0 if it gives none.
uint32_t configured_bits(const Config& config, std::string_view tensor, const std::vector<uint64_t>& shape) {
  const Resolved resolved = Resolver(config).resolve(tensor, shape, true);
  return resolved.weight.empty() ? 0 : info_of(resolved.weight.front().dtype).bits;
}

Result<QuantizationSpec> spec_of(const Config& config, const ModelIndex& model, const WeightDescription& weight) {
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
    const bool are_matrices = packed->stored.shape.size() == 2 && weight.shape.size() == 2;
    const auto fits = [&](uint32_t bits) {
      return are_matrices && packed->stored.shape[1] == packing::words_per_row(weight.shape[1], bits);
    };
    // A few columns fit one word with several numbers of bits: that of the config counts, if it fits.
    const uint32_t configured = configured_bits(config, text_of("{}.weight", weight.layer), weight.shape);
    const auto usual = std::find_if(std::begin(kWordBits), std::end(kWordBits), fits);
    if (usual == std::end(kWordBits))
      return error_at(ErrorCode::shape_mismatch, packed->stored.name,
                      "its words fit no width of 2 to 8 bits a code for this weight");
    spec.dtype = signed_integer(configured >= 2 && configured <= 8 && fits(configured) ? configured : *usual);
    return spec;
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
                  "belongs to no weight that compressed-tensors stores with a scale");
}

// LAYER.weight_shape, two int64; nullopt if its bytes were not read (ModelIndex::inline_tensors).
std::optional<std::vector<uint64_t>> stored_shape(const ModelIndex& model, std::string_view layer) {
  const auto bytes = model.inline_bytes(text_of("{}.weight_shape", layer));
  if (!bytes || bytes->size() != 16) return std::nullopt;
  std::vector<uint64_t> shape(2);
  std::memcpy(shape.data(), bytes->data(), bytes->size());
  return shape;
}

class CompressedTensorsSource final : public SourceFormat {
 public:
  explicit CompressedTensorsSource(Config config) : config_(std::move(config)) {}

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    if (split_name(tensor.stored.name).part == "weight_packed") return StoredRole::codes;
    return use_in_scaled_weight(model, tensor);
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const std::vector<uint64_t>& stored = codes.stored.shape;
    if (stored.size() != 2) return {stored};
    if (codes.stored.dtype == StorageDtype::U8) return {{stored[0], 2 * stored[1]}};
    if (codes.stored.dtype != StorageDtype::I32) return {stored};
    if (auto shape = stored_shape(model, split_name(codes.stored.name).layer);
        shape && (*shape)[0] == stored[0] && (*shape)[1] <= 16 * stored[1])  // 16 codes of 2 bits
      return {std::move(*shape)};
    const uint32_t bits = configured_bits(config_, weight_name(codes), stored);
    if (bits == 0) return {};
    uint64_t columns = stored[1] * 32 / bits;
    // The last word may be filled in part. With as many groups as a word has codes, or more, one multiple of the groups
    // ends in it (ModelIndex reads no weight_shape then).
    const ModelTensor* scale = tensor_of(model, split_name(codes.stored.name).layer, "weight_scale");
    if (scale != nullptr && scale->stored.shape.size() == 2 && scale->stored.shape[1] != 0)
      columns -= columns % scale->stored.shape[1];
    return {{stored[0], columns}, {}};
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    if (tensor_of(model, weight.layer, "weight_scale") == nullptr) return std::optional<StoredWeight>();
    if (const auto shape = stored_shape(model, weight.layer); shape && *shape != weight.shape)
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight_shape", weight.layer),
                      "says [{}, {}], which is not the shape of the weight that {}.weight_packed holds", (*shape)[0],
                      (*shape)[1], weight.layer);
    TRY(spec, spec_of(config_, model, weight));
    if (spec.dtype == Dtype::fp8_e4m3 && spec.scale_format == ScaleFormat::float32)
      set_configured_blocks(spec, Resolver(config_).resolve_weight(weight.layer, weight.layer_type).weight,
                            tensor_of(model, weight.layer, "weight_scale")->stored, weight);
    WeightDescription described = weight;
    described.is_unpacked = tensor_of(model, weight.layer, "weight") != nullptr;
    described.is_reordered = tensor_of(model, weight.layer, "weight_g_idx") != nullptr;
    described.is_stored = true;
    TRY(found, locate(model, kCompressedTensors, described, {spec}, described.is_reordered));
    return std::optional(std::move(found));
  }

  PackMethod pack_method() const noexcept override { return config_.export_info.value_or(ExportInfo{}).pack_method; }

 private:
  Config config_;
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> compressed_tensors_source(const json::Value& block) {
  auto parsed = config::parse_value(block, kCompressedTensors);
  return std::unique_ptr<SourceFormat>(
      std::make_unique<CompressedTensorsSource>(parsed ? std::move(parsed->config) : Config()));
}

}  // namespace wasmquant
