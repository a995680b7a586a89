#include "tools/scaled_floats/scaled_floats.h"

namespace wasmquant {
namespace {

constexpr uint64_t kNvfp4Group = 16, kMxGroup = 32;

constexpr uint64_t blocks_of(uint64_t length, uint64_t block) { return (length + block - 1) / block; }

// Side of the blocks along one axis, given their number: what config.json says; else 128, or another power of two. 0: there
// are no such blocks.
uint64_t block_side(uint64_t length, uint64_t count, uint64_t stated) {
  if (stated != 0) return blocks_of(length, stated) == count ? stated : 0;
  for (const uint64_t side : {128u, 64u, 32u, 256u, 512u})
    if (blocks_of(length, side) == count) return side;
  return 0;
}

}  // namespace

std::optional<ScaledMatrix> scaled_matrix(const std::vector<uint64_t>& shape, const std::vector<uint64_t>& scale_shape,
                                          const uint64_t (&block)[2]) {
  if (shape.size() != 3) return ScaledMatrix{shape, scale_shape, {block[0], block[1]}};
  const uint64_t experts = shape[0], rows = shape[1], columns = shape[2];
  uint64_t scales = 1;
  for (const uint64_t d : scale_shape) scales *= d;
  if (scales == 1) return ScaledMatrix{{experts * rows, columns}, {1}, {}};
  if (scales == experts && scale_shape[0] == experts) return ScaledMatrix{{experts, rows * columns}, {experts}, {}};
  if (scale_shape.size() != 3 || scale_shape[0] != experts) return std::nullopt;
  const uint64_t down = scale_shape[1];
  uint64_t side = down == 1 ? rows : block_side(rows, down, block[0]);
  if (down == rows) side = 1;
  if (side == 0 || rows % side != 0) return std::nullopt;
  return ScaledMatrix{{experts * rows, columns}, {experts * down, scale_shape[2]}, {side, block[1]}};
}

std::optional<QuantizationSpec> scaled_floats_spec(Dtype dtype, const std::vector<uint64_t>& shape, StorageDtype scale,
                                                   const std::vector<uint64_t>& stored_scale_shape,
                                                   const uint64_t (&block)[2]) {
  if (shape.empty()) return std::nullopt;
  std::vector<uint64_t> scale_shape = stored_scale_shape;
  if (scale_shape.size() == 4 && scale_shape[1] == 1 && scale_shape[3] == 1)
    scale_shape = {scale_shape[0], scale_shape[2]};
  if (scale == StorageDtype::F8_E4M3 || scale == StorageDtype::U8) {
    const bool is_nvfp4 = scale == StorageDtype::F8_E4M3;
    const uint64_t group = is_nvfp4 ? kNvfp4Group : kMxGroup;
    std::vector<uint64_t> groups = shape;
    groups.back() /= group;
    if ((is_nvfp4 && dtype != Dtype::fp4) || shape.back() % group != 0 || scale_shape != groups) return std::nullopt;
    return groups_of(dtype, is_nvfp4 ? ScaleFormat::e4m3 : ScaleFormat::e8m0, group);
  }
  if (scale != StorageDtype::F8_E8M0 && (small_float_of(scale) || !is_quantizable(scale))) return std::nullopt;
  uint64_t scales = 1;
  for (const uint64_t d : scale_shape) scales *= d;
  QuantizationSpec spec;
  spec.dtype = dtype;
  const bool is_matrix = shape.size() == 2 && scale_shape.size() == 2;
  if (is_matrix && scale_shape[0] == shape[0] && scale_shape[1] > 1) {
    if (shape[1] % scale_shape[1] != 0) return std::nullopt;
    spec.qscheme = QScheme::per_group;
    spec.observer = ObserverId::PerGroupMinMaxObserver;
    spec.ch_axis = -1;
    spec.group_size = static_cast<int64_t>(shape[1] / scale_shape[1]);
  } else if (scales == 1) {
    spec.qscheme = QScheme::per_tensor;
    spec.observer = ObserverId::PerTensorMinMaxObserver;
  } else if (scales == shape[0] && scale_shape[0] == scales) {
    spec.qscheme = QScheme::per_channel;
    spec.observer = ObserverId::PerChannelMinMaxObserver;
    spec.ch_axis = 0;
  } else {
    if (!is_matrix || scales == 0) return std::nullopt;
    spec.qscheme = QScheme::per_block;
    spec.observer = ObserverId::PerBlock2DMinMaxObserver;
    spec.block_rows = static_cast<uint32_t>(block_side(shape[0], scale_shape[0], block[0]));
    spec.block_columns = static_cast<uint32_t>(block_side(shape[1], scale_shape[1], block[1]));
    if (spec.block_rows == 0 || spec.block_columns == 0) return std::nullopt;
  }
  return spec;
}

Result<WeightLayout> ScaledFloats::layout(const WeightDescription& weight, const Stages& stages) const {
  TRY(layout, begin_layout(weight, stages));
  StorageDtype stored = layout.spec.dtype == Dtype::int8 ? StorageDtype::I8 : StorageDtype::F4;
  for (const StorageDtypeInfo& row : kStorageDtypes)
    if (small_float_of(row.dtype) == layout.spec.dtype) stored = row.dtype;
  const bool is_nibbles = info_of(stored).bits == 4;
  layout.bits = info_of(stored).bits;
  layout.codes = is_nibbles ? CodeStorage::rows_bit_stream : CodeStorage::rows_bytes;
  add_component(layout, weight, Role::codes, "weight", stored, weight.shape);
  if (layout.spec.scale_format == ScaleFormat::e4m3) {
    layout.reciprocal_second_scale = (*weight.stored)["reciprocal"].as_bool();
    add_component(layout, weight, Role::scale, "weight_scale", StorageDtype::F8_E4M3, layout.granularity.scale_shape);
    add_component(layout, weight, Role::second_scale, "weight_scale_2", StorageDtype::F32, {1});
    return std::move(layout);
  }
  add_component(layout, weight, Role::scale, "weight_scale", StorageDtype::F32,
                layout.spec.qscheme == QScheme::per_tensor ? std::vector<uint64_t>{1} : layout.granularity.scale_shape);
  return std::move(layout);
}

const CheckpointFormat& scaled_floats_format() noexcept {
  static constexpr ScaledFloats format;
  return format;
}

}  // namespace wasmquant
