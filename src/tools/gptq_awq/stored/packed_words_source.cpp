// AWQ (words along [out]) and GPTQ (along [in], bits may differ by layer): checkpoint/transposed_words.h.
#include "config/config_text.h"
#include "config/resolve/resolve.h"
#include "packing/packing.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {
namespace {

constexpr uint64_t kNibblesPerWord = 8;

// gptqmodel calls it `format`, too, and has a name of its own for words of bit planes, which are the usual ones for widths
// that divide 32 (gptqmodel 7.7, utils/planar_packing.py).
const std::string& format_of(const json::Value& block) {
  return block["checkpoint_format"].is_string() ? block["checkpoint_format"].as_string() : block["format"].as_string();
}
bool stores_zero_as_it_is(const json::Value& block) { return is_one_of(format_of(block), {"gptq_v2", "gptq_p"}); }

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
  const std::string& format = format_of(block);
  const bool divides_words = bits == 2 || bits == 4 || bits == 8;
  if (divides_words && format == "gptq_p") return {};
  if ((divides_words || bits == 3) && (format.empty() || is_one_of(format, {"gptq", "gptq_v2"}))) return {};
  return error_at(ErrorCode::format_unsupported, "/quantization_config",
                  "found gptq with {} bits, checkpoint_format {q}; gptq is decoded with 2, 3, 4 and 8 bits in gptq and "
                  "gptq_v2, and with 2, 4 and 8 in gptq_p",
                  bits, format);
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

// What a block says of the words, without what it says of how they were made. Layers whose pattern cannot be matched here
// count as the others.
json::Value of_words(const json::Value& block) {
  json::Value own;
  const bool is_awq = block["quant_method"].as_string() == "awq";
  own.set("quant_method", block["quant_method"]);
  own.set("bits", block["bits"].is_null() ? block["w_bit"] : block["bits"]);
  own.set("group_size", block["group_size"].is_null() ? block["q_group_size"] : block["group_size"]);
  if (is_awq) return own;
  for (const char* key : {"sym", "desc_act"}) own.set(key, block[key]);
  json::Value dynamic{json::Object()};
  for (const auto& [key, value] : block["dynamic"].members()) {
    const bool has_sign = key.starts_with("+:") || key.starts_with("-:");
    if (is_usable_pattern(text_of("re:{}", std::string_view(key).substr(has_sign ? 2 : 0))))
      dynamic.set(key, json::Value(value));
  }
  own.set("dynamic", std::move(dynamic));
  return own;
}

class PackedWordsSource final : public SourceFormat {
 public:
  PackedWordsSource(const json::Value& block, Config config)
      : format_(block["quant_method"].as_string()),
        config_(std::move(config)),
        says_group_size_(!(block["group_size"].is_null() && block["q_group_size"].is_null()) &&
                         (format_ == "gptq" || block["extra_config"].members().empty())),
        stores_zero_minus_1_(format_ == "gptq" && !stores_zero_as_it_is(block)),
        is_indexed_(format_ == "gptq" && block["desc_act"].as_bool()) {}

  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const auto [layer, part] = split_name(tensor.stored.name);
    if (part == "qweight") return StoredRole::codes;
    const bool is_part =
        is_one_of(part, {"scales", "qzeros", "g_idx"}) && tensor_of(model, layer, "qweight") != nullptr;
    return is_part ? StoredRole::part : StoredRole::plain;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const std::vector<uint64_t>& stored = codes.stored.shape;
    if (stored.size() != 2) return {stored};
    const uint64_t rows = stored[0], columns = stored[1];
    if (format_ == "awq") return {{kNibblesPerWord * columns, rows}};
    const std::string_view layer = split_name(codes.stored.name).layer;
    if (const ModelTensor* index = tensor_of(model, layer, "g_idx");
        index != nullptr && index->stored.shape.size() == 1)
      return {{columns, index->stored.shape[0]}};
    return {{columns, rows * 32 / info_of(spec_of(layer).dtype).bits}};
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    const ModelTensor* scales = tensor_of(model, weight.layer, "scales");
    if (scales == nullptr) return std::optional<StoredWeight>();
    const QuantizationSpec said = spec_of(weight.layer);
    TRY_VOID(check_groups(*scales, weight, said));
    const bool is_indexed = is_indexed_ || (format_ == "gptq" && tensor_of(model, weight.layer, "g_idx") != nullptr);
    TRY(found, locate(model, format_, weight, {words_spec(dtype_of(model, weight, said), scales->stored, weight)},
                      is_indexed));
    if (stores_zero_minus_1_) found.task.layout.edit([](WeightLayout& layout) { layout.zero_offset = -1; });
    return std::optional(std::move(found));
  }

 private:
  // What the config says of a layer, or of all if it says that this one has no words.
  QuantizationSpec spec_of(std::string_view layer) const {
    const Resolved resolved = resolver_.resolve_weight(layer, "Linear");
    return resolved.weight.empty() ? config_.global.weight.front() : resolved.weight.front();
  }

  Status check_groups(const ModelTensor& scales, const WeightDescription& weight, const QuantizationSpec& said) const {
    if (!says_group_size_ || weight.shape.size() != 2 || scales.stored.shape.empty()) return {};
    const uint64_t columns = weight.shape[1],
                   size = said.qscheme == QScheme::per_group ? static_cast<uint64_t>(said.group_size) : columns,
                   groups = size == 0 ? 0 : columns / size + (columns % size != 0);
    if (scales.stored.shape[0] == groups) return {};
    return error_at(ErrorCode::shape_mismatch, scales.stored.name,
                    "holds {}, scales of {} groups; the words hold {} inputs, in groups of {} as config.json says",
                    describe(scales.stored.dtype, scales.stored.shape), scales.stored.shape[0], columns, size);
  }

  // The width that fills the words, which the config says where the number of inputs is not stored with them.
  Dtype dtype_of(const ModelIndex& model, const WeightDescription& weight, const QuantizationSpec& said) const {
    if (format_ == "awq") return Dtype::uint4;
    const ModelTensor* words = tensor_of(model, weight.layer, "qweight");
    constexpr Dtype kSigned[] = {Dtype::int2, Dtype::int3, Dtype::int4, Dtype::int8};
    constexpr Dtype kUnsigned[] = {Dtype::uint2, Dtype::uint3, Dtype::uint4, Dtype::uint8};
    const bool is_unsigned = !stores_zero_minus_1_ || !said.symmetric;
    for (size_t i = 0; words != nullptr && i < std::size(kSigned); ++i)
      if (!words->stored.shape.empty() && !weight.shape.empty() &&
          words->stored.shape[0] * 32 == weight.shape.back() * info_of(kSigned[i]).bits)  // codes fill the words
        return is_unsigned ? kUnsigned[i] : kSigned[i];
    return is_unsigned ? Dtype::uint4 : Dtype::int4;
  }

  std::string format_;  // "awq" or "gptq"
  Config config_;
  mutable Resolver resolver_{config_};  // it counts what it is asked
  bool says_group_size_;                // of every layer
  bool stores_zero_minus_1_;            // gptq of version 1
  bool is_indexed_;                     // gptq with desc_act
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> packed_words_source(const json::Value& block) {
  TRY_VOID(check_words(block));
  TRY(parsed, config::parse_value(of_words(block), block["quant_method"].as_string()));
  return std::unique_ptr<SourceFormat>(std::make_unique<PackedWordsSource>(block, std::move(parsed.config)));
}

}  // namespace wasmquant
