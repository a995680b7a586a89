// bitsandbytes (quant_method "bitsandbytes"), read only.
//   nf4, fp4  P.weight               bytes of two codes, the first in the high nibble, over the flattened tensor
//             P.weight.quant_map     F32 [16], the number of each code
//             P.weight.absmax        F32 [blocks], the scale of each block of 64 (or another power of two) elements; or
//                                    U8 [blocks], with
//             P.weight.nested_quant_map F32 [256] and P.weight.nested_absmax F32 [blocks / 256]: see lookup_codes.h
//             P.weight.quant_state.bitsandbytes__nf4 (or fp4)  JSON in bytes: shape, block sizes, nested_offset
//   int8      P.weight I8 [out, in], P.SCB F32 [out]: value = code * SCB * 0.007874015718698502, rounded to float32
//             after each product
// Source: bitsandbytes, functional.py, QuantState.as_dict; _ops.py, int8_vectorwise_dequant.
#include <numeric>

#include "checkpoint/read_only_format.h"

namespace wasmquant {
namespace {

constexpr float kInt8Factor = 7.874015718698502e-3f;  // 1 / 127

uint64_t count_of(const json::Value& value) {
  return value.as_integer() > 0 ? static_cast<uint64_t>(value.as_integer()) : 0;
}

// Elements of a line: whole rows and whole blocks; the whole tensor if no smaller number is both.
uint64_t line_of(uint64_t elements, uint64_t row, uint64_t block) {
  uint64_t line;
  const bool fits = !__builtin_mul_overflow(row / std::gcd(row, block), block, &line);
  return fits && elements % line == 0 ? line : elements;
}

}  // namespace

class BitsAndBytes4bit final : public ReadOnlyFormat {
 public:
  std::string_view name() const noexcept override { return "bitsandbytes-4bit"; }
  /// `weight.stored`: {"quant_type": "nf4" | "fp4", "blocksize"} and, for quantized scales, "nested_blocksize" and
  /// "nested_offset".
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages&) const override {
    const uint64_t block = count_of((*weight.stored)["blocksize"]);
    const uint64_t nested_block = count_of((*weight.stored)["nested_blocksize"]);
    uint64_t elements = weight.shape.empty() ? 0 : 1;
    for (const uint64_t d : weight.shape)
      if (__builtin_mul_overflow(elements, d, &elements)) elements = 0;
    if (elements == 0 || block < 2 || block > kLargestBlock || block % 2 != 0 || nested_block > kLargestBlock)
      return error_at(ErrorCode::shape_mismatch, text_of("{}.weight", weight.layer),
                      "has shape {} in blocks of {}; bitsandbytes stores tensors that are not empty in even blocks of "
                      "at most {} elements",
                      describe(weight.source, weight.shape), block, kLargestBlock);
    WeightLayout layout;
    layout.shape = weight.shape;
    layout.source = weight.source;
    layout.columns = line_of(elements, weight.shape.back(), block);
    layout.rows = elements / layout.columns;
    layout.spec = groups_of(Dtype::uint4, ScaleFormat::float32, block);
    layout.bits = 4;
    layout.granularity.outer = elements / block + (elements % block != 0);
    layout.granularity.axis = layout.granularity.block = block;
    layout.granularity.split_outer = true;
    layout.codes = CodeStorage::lookup_nibbles;
    layout.scale_block = static_cast<uint32_t>(nested_block);
    layout.scale_offset = static_cast<float>((*weight.stored)["nested_offset"].as_number());
    const uint64_t blocks = layout.granularity.outer;
    add_component(layout, weight, Role::codes, "weight", StorageDtype::U8, {elements / 2 + elements % 2, 1});
    add_component(layout, weight, Role::lookup, "weight.quant_map", StorageDtype::F32, {16});
    add_component(layout, weight, Role::scale, "weight.absmax",
                  nested_block == 0 ? StorageDtype::F32 : StorageDtype::U8, {blocks});
    if (nested_block != 0) {
      add_component(layout, weight, Role::scale_lookup, "weight.nested_quant_map", StorageDtype::F32, {256});
      add_component(layout, weight, Role::scale_of_scales, "weight.nested_absmax", StorageDtype::F32,
                    {blocks / nested_block + (blocks % nested_block != 0)});
    }
    return layout;
  }

 private:
  static constexpr uint64_t kLargestBlock = 65536;
};

class BitsAndBytesInt8 final : public ReadOnlyFormat {
 public:
  std::string_view name() const noexcept override { return "bitsandbytes-int8"; }
  Result<WeightLayout> layout(const WeightDescription& weight, const Stages& stages) const override {
    TRY(layout, begin_layout(weight, stages));
    layout.codes = CodeStorage::rows_bytes;
    layout.factor = kInt8Factor;
    add_component(layout, weight, Role::codes, "weight", StorageDtype::I8, weight.shape);
    add_component(layout, weight, Role::scale, "SCB", StorageDtype::F32, {layout.rows});
    return std::move(layout);
  }
};

const CheckpointFormat& bitsandbytes_4bit_format() noexcept {
  static constexpr BitsAndBytes4bit format;
  return format;
}

const CheckpointFormat& bitsandbytes_int8_format() noexcept {
  static constexpr BitsAndBytesInt8 format;
  return format;
}

}  // namespace wasmquant
