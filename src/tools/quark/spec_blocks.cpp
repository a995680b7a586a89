// Blocks: what dtype mx is made of, minifloats, sizes of groups and 2-D blocks, and how block scales are stored
// (AMD Quark, spec 1.3 rule 6, 3.4 to 3.6).
#include "config/spec/vocabulary.h"
#include "core/message.h"
#include "tools/quark/spec_parser.h"

namespace wasmquant::config {
namespace {

constexpr int64_t kMxGroupSize = 32;  // of the OCP formats
constexpr int64_t kMaxBlockLength = 1 << 16;

}  // namespace

bool SpecParser::read_mx_element() {
  is_mx_ = true;
  spec_.scale_format = ScaleFormat::e8m0;
  if (in_.find("mx_element_dtype") == nullptr) {
    in_.out().error("key-missing", in_.where(), "dtype mx needs mx_element_dtype",
                    text_of("one of: {}", joined(kMxElements)));
    return false;
  }
  const int index = in_.word("mx_element_dtype", kMxElements);
  if (index < 0) return false;
  spec_.dtype = *dtype_named(kMxElements[static_cast<size_t>(index)]);
  return true;
}

void SpecParser::read_minifloat() {
  const json::Value *exponent = in_.find("exponent_bits"), *mantissa = in_.find("mantissa_bits");
  if (!dtype_known_ || spec_.dtype != Dtype::minifloat) {
    if (exponent != nullptr) ignored("exponent_bits", "exponent_bits only applies to dtype minifloat");
    if (mantissa != nullptr) ignored("mantissa_bits", "mantissa_bits only applies to dtype minifloat");
    return;
  }
  if (exponent == nullptr || mantissa == nullptr) {
    in_.out().error("key-missing", in_.where(), "dtype minifloat needs exponent_bits and mantissa_bits");
    return;
  }
  if (exponent->as_integer() < 1 || exponent->as_integer() > 7)
    in_.error("value-invalid", "exponent_bits", text_of("{} exponent bits are outside 1..7", exponent->as_integer()),
              "use bfloat16 for 8");
  if (mantissa->as_integer() < 0 || mantissa->as_integer() > 10)
    in_.error("value-invalid", "mantissa_bits", text_of("{} mantissa bits are outside 0..10", mantissa->as_integer()));
  spec_.exponent_bits = static_cast<uint8_t>(exponent->as_integer());
  spec_.mantissa_bits = static_cast<uint8_t>(mantissa->as_integer());
}

void SpecParser::read_group_size(const json::Value* group) {
  const DtypeInfo& dtype = info_of(spec_.dtype);
  if (group == nullptr) {
    if (dtype.is_block())
      spec_.group_size = dtype.default_block;
    else if (is_mx_)
      spec_.group_size = kMxGroupSize;
    else if (!in_.mentions("group_size"))
      in_.out().error("key-missing", in_.where(), "per_group needs a group_size",
                      "commonly 32, 64 or 128; -1 for the whole axis");
    return;
  }
  spec_.group_size = group->as_integer();
  if (!dtype.is_block()) return;
  if (dtype.pair_shift && (spec_.group_size < 2 || spec_.group_size % 2 != 0 || spec_.group_size > kMaxBlockLength))
    in_.error("value-invalid", "group_size",
              text_of("blocks of {} hold pairs and cannot have {} elements", dtype.name, spec_.group_size),
              "an even number, commonly 16 or 32");
  if (!dtype.pair_shift && spec_.group_size != dtype.default_block)
    in_.error("value-invalid", "group_size",
              text_of("blocks of {} always have {} elements", dtype.name, dtype.default_block + 0u),
              "leave the key out");
}

void SpecParser::read_block_size() {
  const json::Value* block = in_.find("block_size");
  if (block == nullptr) {
    in_.out().error("key-missing", in_.where(), "per_block needs a block_size", "two numbers, for example [128, 128]");
    return;
  }
  if (!block->is_array() || block->items().size() != 2 || !block->items()[0].is_integer() ||
      !block->items()[1].is_integer())
    return;  // reported with the type of block_size
  const int64_t rows = block->items()[0].as_integer(), columns = block->items()[1].as_integer();
  if (rows < 1 || columns < 1 || rows > kMaxBlockLength || columns > kMaxBlockLength) {
    in_.error("value-invalid", "block_size", text_of("blocks of {} by {} elements are not allowed", rows, columns),
              text_of("two numbers from 1 to {}", kMaxBlockLength));
    return;
  }
  spec_.block_rows = static_cast<uint32_t>(rows);
  spec_.block_columns = static_cast<uint32_t>(columns);
}

void SpecParser::read_scale_format() {
  const DtypeInfo& dtype = info_of(spec_.dtype);
  ScaleFormat format = spec_.scale_format;  // that of dtype mx
  const bool given = in_.find("scale_format") != nullptr;
  in_.read_word("scale_format", kScaleFormats, format);
  const std::string_view name = word_of(format, kScaleFormats);
  if (given && dtype.is_block()) {
    ignored("scale_format", text_of("{} has shared exponents and no scales", dtype.name));
    format = ScaleFormat::float32;
  } else if (is_mx_ && format != ScaleFormat::e8m0) {
    in_.error("value-invalid", "scale_format", text_of("dtype mx has e8m0 scales, not {}", name), "leave the key out");
  } else if (dtype_known_ && !is_mx_ && dtype.is_integer && format != ScaleFormat::float32) {
    in_.warning("key-ignored", "scale_format",
                text_of("scale_format {} only applies to floating dtypes, not {}", name, dtype.name),
                "for MX integers use dtype mx with mx_element_dtype int8");
    format = ScaleFormat::float32;
  } else if (format == ScaleFormat::e4m3 && known_scheme_ && spec_.qscheme != QScheme::per_group) {
    in_.error("value-invalid", "scale_format", "scale_format e4m3 is for the scales of groups",
              "use per_group, or another scale_format");
  }
  spec_.scale_format = format;

  if (in_.word("scale_calculation_mode", kScaleCalculationModes) >= 0) {
    if (format == ScaleFormat::e8m0)
      in_.read_word("scale_calculation_mode", kScaleCalculationModes, spec_.scale_calculation_mode);
    else
      ignored("scale_calculation_mode", "scale_calculation_mode only applies to scale_format e8m0");
  }
  if (format == ScaleFormat::float32 || spec_.scale_type == ScaleType::float_) return;
  const bool same = (format == ScaleFormat::e8m0 && spec_.scale_type == ScaleType::float8_e8m0fnu) ||
                    (format == ScaleFormat::e5m3 && spec_.scale_type == ScaleType::float8_e5m3);
  if (!same) ignored("scale_type", text_of("scale_format {} already says how scales are stored", name));
  spec_.scale_type = ScaleType::float_;
}

}  // namespace wasmquant::config
