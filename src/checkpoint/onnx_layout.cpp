// The limits of each operator, and a builder that adds the components of a layout: codes, scales, zero points.
#include "checkpoint/onnx_layout.h"

#include <bit>

#include "core/message.h"
#include "runtimes/onnx_runtime/texts.h"

namespace wasmquant {
namespace {

// Codes, scales and zero points in blocks along a row.
bool stores_blocks(OnnxForm form) noexcept { return form == OnnxForm::mat_mul_n_bits || form == OnnxForm::gather_rows; }

// The first {} of `message` is the form's operator.
Error unsupported_by(OnnxForm form, std::string_view weight, const char* message, uint64_t number = 0) {
  return error_at(ErrorCode::format_unsupported, weight, message, name_of(form), number);
}

// Limits of MatMulNBits. The native runtime takes longer blocks, too; that of WebAssembly does not.
constexpr uint64_t kSmallestBlock = 16, kLargestBlock = 256;

// The block of MatMulNBits: the group, or where it is longer or there are none, what takes the fewest bytes. Rows have
// two blocks or more: onnxruntime-web 1.30 misreads single ones on WebGPU in its jsep build.
uint64_t block_of(const QuantizationSpec& spec, uint64_t columns, uint64_t scale_bytes) noexcept {
  const bool has_groups = spec.qscheme == QScheme::per_group;
  const auto group = static_cast<uint64_t>(spec.group_size);
  if (has_groups && group < columns && group <= kLargestBlock && std::has_single_bit(group)) return group;
  uint64_t best = kSmallestBlock, least = 0;
  for (uint64_t block = kLargestBlock; block >= kSmallestBlock; block /= 2) {
    if ((has_groups && group % block != 0) || block >= columns) continue;
    const uint64_t bytes = (columns + block - 1) / block * (block * code_bits_of(spec) / 8 + scale_bytes);
    if (least == 0 || bytes < least) {
      least = bytes;
      best = block;
    }
  }
  return best;
}

class OperatorLimits {
 public:
  OperatorLimits(OnnxForm form, const OnnxWeight& weight, const QuantizationSpec& spec)
      : form_(form), weight_(weight), spec_(spec), bits_(code_bits_of(spec)) {}

  Status check() const {
    const size_t rank = weight_.shape.size();
    if (spec_.qscheme == QScheme::per_block) return unsupported("{} has no scales of two-dimensional blocks");
    if (spec_.scale_format != ScaleFormat::float32) return unsupported("{} supports only floating-point scales");
    if (spec_.zero_point_type == ZeroPointType::float32) return unsupported("{} supports only whole zero points");
    if (!info_of(spec_.dtype).is_integer) return unsupported("{} stores only integers");
    if (counts_from_ends(spec_))
      return unsupported("{} has only zero points among the codes; set scale_sign to positive");
    if (spec_.qscheme == QScheme::per_group && rank != 2 && !weight_.is_batch)
      return unsupported("{} supports groups only for matrices");
    if (form_ == OnnxForm::cast_and_scale && (bits_ != 8 || spec_.qscheme == QScheme::per_group))
      return unsupported("{} has 8 bits and a scale per tensor or per channel");
    if (form_ == OnnxForm::integer_operator) {
      if (bits_ != 8) return unsupported("{} supports only 8 bits");
      if (spec_.qscheme == QScheme::per_group)
        return unsupported("{} has a scale per tensor or per channel, not groups");
      if (weight_.type != StorageDtype::F32) return unsupported("{} quantizes only float32 inputs");
      if (weight_.is_batch && (!weight_.is_input_major || !spec_.symmetric))
        return unsupported("{} accepts batches of matrices [in, out] with symmetric codes");
      const bool is_conv = rank > 2 && !weight_.is_batch;
      if (is_conv && spec_.qscheme == QScheme::per_channel && !spec_.symmetric)
        return unsupported("{} on convolutions has one zero point; use symmetric int8, or a scale per tensor");
      if (spec_.qscheme == QScheme::per_channel && spec_.ch_axis != 0)
        return unsupported("{} has a scale per output channel (ch_axis 0)");
    }
    return stores_blocks(form_) ? check_matrix() : Status();
  }

 private:
  Error unsupported(const char* message, uint64_t number = 0) const {
    return unsupported_by(form_, weight_.name, message, number);
  }

  Status check_matrix() const {
    if (weight_.shape.size() != 2) return unsupported("{} stores only matrices");
    const bool has_groups = spec_.qscheme == QScheme::per_group;
    if (spec_.qscheme != QScheme::per_tensor && spec_.ch_axis != (has_groups ? 1 : 0))
      return unsupported(
          "{} has a scale per group of inputs (ch_axis 1), per output channel (ch_axis 0) or per tensor");
    if (bits_ != 2 && bits_ != 4 && bits_ != 8) return unsupported("{} stores 2, 4 or 8 bits, not {}", bits_);
    const uint64_t size = has_groups ? static_cast<uint64_t>(spec_.group_size) : weight_.shape[1];
    if (form_ == OnnxForm::gather_rows && size * bits_ % 8 != 0)
      return unsupported("{} has groups of whole bytes, not of {} codes", size);
    if (form_ == OnnxForm::mat_mul_n_bits && has_groups && (size == 0 || size % kSmallestBlock != 0))
      return unsupported("{} has groups of a multiple of 16 elements, not of {}", size);
    return {};
  }

  const OnnxForm form_;
  const OnnxWeight& weight_;
  const QuantizationSpec& spec_;
  const uint32_t bits_;
};

class Builder {
 public:
  Builder(OnnxForm form, const OnnxWeight& weight, const QuantizationSpec& spec)
      : form_(form), weight_(weight), dtype_(info_of(spec.dtype)) {
    layout_.spec = spec;
    layout_.shape = weight.shape;
    layout_.source = weight.source;
    layout_.bits = static_cast<uint8_t>(code_bits_of(spec));
  }

  Result<WeightLayout> run() {
    QuantizationSpec& spec = layout_.spec;
    if (spec.ch_axis < 0) spec.ch_axis += weight_.is_batch ? 2 : static_cast<int64_t>(weight_.shape.size());
    TRY_VOID(OperatorLimits(form_, weight_, spec).check());
    // MatMulNBits needs [N, K], MatMulInteger [K, N].
    const bool stores_input_major = weight_.is_batch                    ? weight_.is_input_major
                                    : form_ == OnnxForm::mat_mul_n_bits ? false
                                    : form_ == OnnxForm::integer_operator && layout_.shape.size() == 2
                                        ? true
                                        : weight_.is_input_major != weight_.is_transposed;
    if (stores_input_major != weight_.is_input_major) {
      std::swap(layout_.shape[0], layout_.shape[1]);
      layout_.source_transposed = true;
    }
    if (stores_input_major && spec.qscheme != QScheme::per_tensor && (spec.ch_axis == 0 || spec.ch_axis == 1))
      spec.ch_axis = 1 - spec.ch_axis;
    if (weight_.is_batch && spec.qscheme != QScheme::per_tensor && spec.ch_axis < 2)
      spec.ch_axis += static_cast<int64_t>(layout_.shape.size()) - 2;
    layout_.rows = layout_.shape.empty() ? 1 : layout_.shape[0];
    layout_.columns = 1;
    for (size_t d = 1; d < layout_.shape.size(); ++d) layout_.columns *= layout_.shape[d];
    // Codes are chosen for scales of the type that is stored.
    if (weight_.type == StorageDtype::F16) spec.scale_type = ScaleType::float16;
    if (weight_.type == StorageDtype::BF16) spec.scale_type = ScaleType::bfloat16;
    if (weight_.type == StorageDtype::F32) spec.scale_type = ScaleType::float_;
    if (form_ == OnnxForm::mat_mul_n_bits || weight_.block != 0) spec.grid.pads_groups = true;
    auto granularity = granularity_of(layout_.shape, spec);
    if (!granularity) {
      granularity.error().where = weight_.name;
      return std::move(granularity.error());
    }
    layout_.granularity = std::move(*granularity);
    TRY_VOID(stores_blocks(form_) ? add_blocks() : add_linear());
    return std::move(layout_);
  }

 private:
  void add(Role role, const char* suffix, StorageDtype dtype, std::vector<uint64_t> shape, uint64_t bytes) {
    layout_.components.push_back({role, text_of("{}{}", weight_.name, suffix), dtype, std::move(shape), bytes});
  }

  Status add_blocks() {
    const QuantizationSpec& spec = layout_.spec;
    const uint64_t scale_bytes = info_of(weight_.type).bits / 8;
    const bool is_gather = form_ == OnnxForm::gather_rows;
    layout_.codes = CodeStorage::rows_blocks;
    layout_.block = weight_.block != 0                   ? weight_.block
                    : !is_gather                         ? block_of(spec, layout_.columns, scale_bytes)
                    : spec.qscheme == QScheme::per_group ? layout_.granularity.block
                                                         : std::max<uint64_t>(layout_.columns, 1);
    const uint64_t rows = layout_.rows, groups = layout_.stored_blocks();
    // Codes are stored unsigned.
    layout_.code_offset = dtype_.is_signed ? static_cast<int16_t>(1 << (layout_.bits - 1)) : int16_t{0};
    const uint64_t group_bytes = layout_.block * layout_.bits / 8;
    add(Role::codes,
        layout_.bits == 4   ? "_Q4"
        : layout_.bits == 8 ? "_Q8"
                            : "_Q2",
        StorageDtype::U8, {rows, groups, group_bytes}, rows * groups * group_bytes);
    std::vector<uint64_t> shape{rows, groups};
    if (is_gather) shape.push_back(1);
    add(Role::scale, "_scales", weight_.type, shape, rows * groups * scale_bytes);
    if (dtype_.is_signed && spec.symmetric) return {};
    if (is_gather) {
      layout_.zero_point = ZeroPointStorage::bytes;
      add(Role::zero_point, "_zero_points", StorageDtype::U8, std::move(shape), rows * groups);
      return {};
    }
    layout_.zero_point = ZeroPointStorage::row_bits;
    const uint64_t row_bytes = (groups * layout_.bits + 7) / 8;
    add(Role::zero_point, "_zero_points", StorageDtype::U8, {rows, row_bytes}, rows * row_bytes);
    return {};
  }

  bool is_conv() const { return weight_.shape.size() > 2 && !weight_.is_batch; }

  Status add_linear() {
    const QuantizationSpec& spec = layout_.spec;
    const Granularity& g = layout_.granularity;
    if (layout_.bits != 2 && layout_.bits != 4 && layout_.bits != 8)
      return unsupported_by(form_, weight_.name, "{} stores 2, 4 or 8 bits, not {}", layout_.bits);
    // ONNX Runtime 1.32 makes MatMulNBits of it, and takes four codes of a byte for outputs of one input.
    const bool is_input_major = weight_.is_input_major != layout_.source_transposed;
    if (form_ == OnnxForm::dequantize_linear && layout_.bits == 2 && is_input_major && layout_.shape.back() % 4 != 0)
      return unsupported_by(form_, weight_.name, onnx_runtime::kMisreadsTwoBits, layout_.shape.back());
    const uint64_t elements = g.element_count(), scales = g.scale_count();
    std::vector<uint64_t> shape;
    if (spec.qscheme == QScheme::per_channel) shape.push_back(g.axis);
    if (spec.qscheme == QScheme::per_group) {
      shape = layout_.shape;
      shape[static_cast<size_t>(spec.ch_axis)] = g.blocks();
    }
    if (form_ == OnnxForm::cast_and_scale && spec.qscheme == QScheme::per_channel) {
      shape.assign(layout_.shape.size(), 1);
      shape[static_cast<size_t>(spec.ch_axis)] = g.axis;
    }
    std::vector<uint64_t> scale_shape = shape;
    if (form_ == OnnxForm::integer_operator && spec.qscheme == QScheme::per_channel && !weight_.is_batch)
      for (size_t d = 2; d < weight_.shape.size(); ++d) scale_shape.push_back(1);
    // ONNX Runtime convolves bytes of both signs several times slower.
    const bool is_shifted = form_ == OnnxForm::integer_operator && dtype_.is_signed && is_conv();
    if (is_shifted) layout_.code_offset = 128;
    const StorageDtype stored = dtype_.is_signed && !is_shifted ? StorageDtype::I8 : StorageDtype::U8;
    layout_.codes = layout_.bits == 8 ? CodeStorage::rows_bytes : CodeStorage::rows_bit_stream;
    add(Role::codes, "_quantized", stored, layout_.shape, (elements * layout_.bits + 7) / 8);
    add(Role::scale, "_scale", weight_.type, std::move(scale_shape), scales * info_of(weight_.type).bits / 8);
    if (spec.symmetric) return {};
    layout_.zero_point = layout_.bits == 8 ? ZeroPointStorage::bytes : ZeroPointStorage::bit_stream;
    add(Role::zero_point, "_zero_point", stored, std::move(shape), (scales * layout_.bits + 7) / 8);
    return {};
  }

  const OnnxForm form_;
  const OnnxWeight& weight_;
  const DtypeInfo& dtype_;
  WeightLayout layout_;
};

}  // namespace

std::string_view name_of(OnnxForm form) noexcept {
  switch (form) {
    case OnnxForm::mat_mul_n_bits:
      return "MatMulNBits";
    case OnnxForm::dequantize_linear:
      return "DequantizeLinear";
    case OnnxForm::cast_and_scale:
      return "Cast and Mul";
    case OnnxForm::integer_operator:
      return "MatMulInteger and ConvInteger";
    case OnnxForm::gather_rows:
      return "Gather of codes";
  }
  return {};
}

Result<WeightLayout> onnx_layout(OnnxForm form, const OnnxWeight& weight, const QuantizationSpec& spec) {
  return Builder(form, weight, spec).run();
}

uint32_t onnx_opset_of(OnnxForm form, const WeightLayout& layout) noexcept {
  if (form == OnnxForm::integer_operator) return 11;
  if (form != OnnxForm::dequantize_linear) return 0;
  if (layout.bits == 2) return 25;
  if (layout.bits == 4 || layout.spec.qscheme == QScheme::per_group) return 21;
  if (layout.spec.scale_type != ScaleType::float_) return 19;
  return layout.spec.qscheme == QScheme::per_channel ? 13 : 10;
}

}  // namespace wasmquant
