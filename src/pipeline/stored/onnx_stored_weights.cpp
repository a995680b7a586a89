// The spec and layout of codes, from the types and shapes of the tensors that a node reads together.
#include "pipeline/stored/onnx_stored_weights.h"

namespace wasmquant::conversion {
namespace {

using onnx::DataType;
using onnx::kNone;
using onnx::Tensor;

uint64_t count_of(const std::vector<uint64_t>& shape) noexcept {
  uint64_t count = 1;  // of an existing tensor: below 2^55
  for (const uint64_t d : shape) count *= d;
  return count;
}

std::optional<Dtype> integer_of(uint64_t bits, bool is_signed) noexcept {
  for (const DtypeInfo& row : kDtypes)
    if (row.is_integer && row.bits == bits && row.is_signed == is_signed) return row.dtype;
  return std::nullopt;
}

// Of codes that a node reads as such: those of up to 8 bits.
std::optional<Dtype> dtype_of(const Tensor& tensor) noexcept {
  for (const DataType type : {DataType::int8, DataType::int4, DataType::int2})
    if (static_cast<uint32_t>(type) == tensor.data_type) return integer_of(onnx::bits_of(tensor.data_type), true);
  for (const DataType type : {DataType::uint8, DataType::uint4, DataType::uint2})
    if (static_cast<uint32_t>(type) == tensor.data_type) return integer_of(onnx::bits_of(tensor.data_type), false);
  return std::nullopt;
}

// The tensor's name without what tools append for codes.
std::string name_of_weight(std::string_view codes) {
  for (const std::string_view suffix : {"_quantized", "_Q4", "_Q8", "_Q2"})
    if (codes.size() > suffix.size() && codes.ends_with(suffix))
      return std::string(codes.substr(0, codes.size() - suffix.size()));
  return std::string(codes);
}

// The only value of a tensor of bytes. onnx.helper writes it as a varint, whose first byte has it.
std::optional<uint8_t> byte_of(const onnx::Model& model, const Tensor& tensor) noexcept {
  const onnx::Range values{tensor.begin, tensor.end};
  if (tensor.is_external() || count_of(tensor.shape) != 1 || !model.skeleton->is_kept(values)) return std::nullopt;
  const std::string_view bytes = model.skeleton->text(values);
  return bytes.empty() ? std::nullopt : std::optional(static_cast<uint8_t>(bytes[0]));
}

void set_channels(QuantizationSpec& spec, int64_t axis) {
  spec.qscheme = QScheme::per_channel;
  spec.observer = ObserverId::PerChannelMinMaxObserver;
  spec.ch_axis = axis;
}
void set_groups(QuantizationSpec& spec, int64_t axis, uint64_t size) {
  spec.qscheme = QScheme::per_group;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  spec.ch_axis = axis;
  spec.group_size = static_cast<int64_t>(size);
}

class Finder {
 public:
  Finder(const onnx::Model& model, const StoredParts& parts)
      : model_(model), codes_(model.tensors[parts.codes]), scale_(model.tensors[parts.scale]) {
    found_.parts = parts;
    found_.name = described_.name = name_of_weight(codes_.name);
    spec_.symmetric = parts.zero_point == kNone;
    if (const auto type = onnx::weight_dtype_of(scale_.data_type))
      found_.type = described_.source = described_.type = *type;
    is_float_ = onnx::weight_dtype_of(scale_.data_type) && scale_.encoding == onnx::Encoding::bytes;
    if (const auto dtype = dtype_of(codes_)) spec_.dtype = *dtype;
  }

  std::optional<StoredOnnxWeight> linear(int64_t axis, int64_t block_size) {
    const size_t rank = codes_.shape.size();
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (!dtype_of(codes_) || rank < 2 || axis < 0 || static_cast<size_t>(axis) >= rank) return std::nullopt;
    described_.shape = codes_.shape;
    const uint64_t length = codes_.shape[static_cast<size_t>(axis)], scales = count_of(scale_.shape);
    const auto block = static_cast<uint64_t>(block_size);
    if (block_size > 0) {
      const int64_t batch = static_cast<int64_t>(rank) - 2;  // axes before the matrices
      if (scale_.shape.size() != rank || length % block != 0 || axis < batch) return std::nullopt;
      described_.is_batch = rank > 2;
      set_groups(spec_, axis - batch, block);
    } else if (scales == length && scales != 1) {
      set_channels(spec_, axis);
    } else if (scales != 1) {
      return std::nullopt;
    }
    return share_zero_point(scales) ? laid_out(OnnxForm::dequantize_linear) : std::nullopt;
  }

  std::optional<StoredOnnxWeight> transposed() {
    if (!dtype_of(codes_) || codes_.shape.size() != 3) return std::nullopt;
    const uint64_t stack = codes_.shape[0], rows = codes_.shape[1], scales = count_of(scale_.shape);
    described_.shape = codes_.shape;
    if (scales == stack * codes_.shape[2]) {
      described_.is_batch = true;  // groups of a whole column
      set_groups(spec_, 0, rows);
    } else if (scales == stack) {
      set_channels(spec_, 0);
    } else {
      return std::nullopt;
    }
    auto found = laid_out(OnnxForm::dequantize_linear);
    if (!found) return found;
    found->layout.matrix_rows = rows;
    std::swap(found->shape[1], found->shape[2]);
    return found;
  }

  std::optional<StoredOnnxWeight> blocks(const StoredBlocks& size) {
    const auto dtype = integer_of(size.bits, spec_.symmetric);
    const bool is_known = size.bits == 2 || size.bits == 4 || size.bits == 8;
    const auto is_bytes = [](const Tensor& tensor) {
      return tensor.data_type == static_cast<uint32_t>(DataType::uint8);
    };
    if (!is_known || !dtype || !is_bytes(codes_) || size.block == 0 || size.rows == 0 || size.columns == 0 ||
        (!spec_.symmetric && !is_bytes(model_.tensors[found_.parts.zero_point])))
      return std::nullopt;
    spec_.dtype = *dtype;
    described_.shape = {size.rows, size.columns};
    described_.block = size.block;
    set_groups(spec_, 1, size.block);
    if (auto found = laid_out(OnnxForm::mat_mul_n_bits)) return found;
    return laid_out(OnnxForm::gather_rows);  // a byte for each zero point
  }

 private:
  // One zero point for all channels: that of signed codes, as they are or stored as unsigned ones, needs none in the layout.
  bool share_zero_point(uint64_t scales) {
    uint32_t& zero_point = found_.parts.zero_point;
    if (zero_point == kNone || count_of(model_.tensors[zero_point].shape) == scales) return true;
    const auto value = byte_of(model_, model_.tensors[zero_point]);
    if (!value || onnx::bits_of(codes_.data_type) != 8) return false;
    const bool is_centre = *value == 128 && !info_of(spec_.dtype).is_signed;
    if (*value != 0 && !is_centre) return false;
    if (is_centre) {
      spec_.dtype = Dtype::int8;
      offset_ = 128;
    }
    zero_point = kNone;
    spec_.symmetric = true;
    return true;
  }

  // If the stored parts have the sizes of the layout's components.
  std::optional<StoredOnnxWeight> laid_out(OnnxForm form) const {
    auto layout = onnx_layout(form, described_, spec_);
    if (!is_float_ || !layout) return std::nullopt;
    StoredOnnxWeight found = found_;
    for (Component& component : layout->components) {
      const uint32_t part = found.parts.of(component.role);
      if (part == kNone) return std::nullopt;
      const Tensor& stored = model_.tensors[part];
      const uint64_t bytes = stored.end - stored.begin;
      if (stored.encoding == onnx::Encoding::varints && bytes >= component.bytes)
        component.varint_bytes = bytes;
      else if (bytes != component.bytes)
        return std::nullopt;
    }
    if (offset_ != 0) layout->code_offset = offset_;
    found.form = form;
    found.shape = described_.shape;
    found.layout = std::move(*layout);
    return found;
  }

  const onnx::Model& model_;
  const Tensor &codes_, &scale_;
  StoredOnnxWeight found_;
  OnnxWeight described_;
  QuantizationSpec spec_;
  bool is_float_ = false;  // the scale, in a range of bytes
  int16_t offset_ = 0;
};

}  // namespace

std::optional<StoredOnnxWeight> find_linear(const onnx::Model& model, const StoredParts& parts, int64_t axis,
                                            int64_t block_size) {
  return Finder(model, parts).linear(axis, block_size);
}

std::optional<StoredOnnxWeight> find_transposed(const onnx::Model& model, const StoredParts& parts) {
  return Finder(model, parts).transposed();
}

std::optional<StoredOnnxWeight> find_blocks(const onnx::Model& model, const StoredParts& parts,
                                            const StoredBlocks& blocks) {
  return Finder(model, parts).blocks(blocks);
}

std::shared_ptr<const StoredWeight> stored_weight(const onnx::Model& model, const StoredOnnxWeight& weight) {
  auto stored = std::make_shared<StoredWeight>();
  stored->format = name_of(weight.form);
  stored->weight.shape = weight.shape;
  stored->weight.source = weight.type;
  stored->task.name = weight.name;
  for (const Component& component : weight.layout.components) {
    const auto [file, begin] = model.place_of(model.tensors[weight.parts.of(component.role)]);
    stored->task.components.push_back({file, begin});
  }
  stored->task.layout = weight.layout;
  return stored;
}

}  // namespace wasmquant::conversion
