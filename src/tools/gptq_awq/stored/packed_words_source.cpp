// AWQ (words along [out]) and GPTQ (along [in], bits may differ by layer): checkpoint/transposed_words.h.
#include "packing/packing.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {
namespace {

constexpr uint64_t kNibblesPerWord = 8;

bool is_gptq_v2(const json::Value& block) { return block["checkpoint_format"].as_string() == "gptq_v2"; }

int64_t bits_of(const json::Value& block) {
  return block["bits"].is_null() ? block["w_bit"].as_integer() : block["bits"].as_integer();
}

// Accepts known schemes only: other versions arrange the same names differently.
Status check_words(const json::Value& block) {
  const bool is_awq = block["quant_method"].as_string() == "awq";
  const int64_t bits = bits_of(block);
  if (is_awq) {
    if (bits == 4 && (!block["version"].is_string() || is_one_of(block["version"].as_string(), {"gemm", "GEMM"})))
      return {};
    return error_at(ErrorCode::format_unsupported, "/quantization_config",
                    "found awq with {} bits, version {q}; awq is decoded with 4 bits, version gemm", bits,
                    block["version"].as_string());
  }
  const bool version_2 = is_gptq_v2(block),
             version_1 = !block["checkpoint_format"].is_string() || block["checkpoint_format"].as_string() == "gptq";
  const bool is_known_width = bits == 2 || bits == 3 || bits == 4 || bits == 8;
  if (is_known_width && (version_1 || version_2)) return {};
  return error_at(ErrorCode::format_unsupported, "/quantization_config",
                  "found gptq with {} bits, checkpoint_format {q}; gptq is decoded with 2, 3, 4 and 8 bits in gptq and "
                  "gptq_v2",
                  bits, block["checkpoint_format"].as_string());
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

class PackedWordsSource final : public SourceFormat {
 public:
  explicit PackedWordsSource(const json::Value& block)
      : format_(block["quant_method"].as_string()),
        bits_(static_cast<uint32_t>(bits_of(block))),
        stores_zero_minus_1_(format_ == "gptq" && !is_gptq_v2(block)),
        is_unsigned_(!stores_zero_minus_1_ || !block["sym"].as_bool()),
        is_indexed_(format_ == "gptq" && block["desc_act"].as_bool()) {}

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const auto [layer, part] = split_name(tensor.stored.name);
    if (part == "qweight") return StoredRole::codes;
    const bool is_part =
        is_one_of(part, {"scales", "qzeros", "g_idx"}) && tensor_of(model, layer, "qweight") != nullptr;
    return is_part ? StoredRole::part : StoredRole::plain;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex&, const ModelTensor& codes) const override {
    const std::vector<uint64_t>& stored = codes.stored.shape;
    if (stored.size() != 2) return {stored};
    const uint64_t rows = stored[0], columns = stored[1];
    if (format_ == "awq") return {{kNibblesPerWord * columns, rows}};
    List<std::vector<uint64_t>> shapes;  // g_idx has one entry per input, which decides
    for (const uint64_t bits : {bits_, 4u, 8u, 2u, 3u}) shapes.push_back({columns, rows * 32 / bits});
    return shapes;
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    const ModelTensor* scales = tensor_of(model, weight.layer, "scales");
    if (scales == nullptr) return std::optional<StoredWeight>();
    TRY(found,
        locate(model, format_, weight, {words_spec(dtype_of(model, weight), scales->stored, weight)}, is_indexed_));
    if (stores_zero_minus_1_) found.task.layout.edit([](WeightLayout& layout) { layout.zero_offset = -1; });
    return std::optional(std::move(found));
  }

 private:
  Dtype dtype_of(const ModelIndex& model, const WeightDescription& weight) const {
    if (format_ == "awq") return Dtype::uint4;
    const ModelTensor* words = tensor_of(model, weight.layer, "qweight");
    constexpr Dtype kSigned[] = {Dtype::int2, Dtype::int3, Dtype::int4, Dtype::int8};
    constexpr Dtype kUnsigned[] = {Dtype::uint2, Dtype::uint3, Dtype::uint4, Dtype::uint8};
    for (size_t i = 0; words != nullptr && i < std::size(kSigned); ++i)
      if (!words->stored.shape.empty() && !weight.shape.empty() &&
          words->stored.shape[0] * 32 == weight.shape.back() * info_of(kSigned[i]).bits)  // codes fill the words
        return is_unsigned_ ? kUnsigned[i] : kSigned[i];
    return is_unsigned_ ? Dtype::uint4 : Dtype::int4;
  }

  std::string format_;  // "awq" or "gptq"
  uint32_t bits_;
  bool stores_zero_minus_1_;  // gptq of version 1
  bool is_unsigned_;          // all but symmetric gptq of version 1
  bool is_indexed_;           // gptq with desc_act
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> packed_words_source(const json::Value& block) {
  TRY_VOID(check_words(block));
  return std::unique_ptr<SourceFormat>(std::make_unique<PackedWordsSource>(block));
}

}  // namespace wasmquant
