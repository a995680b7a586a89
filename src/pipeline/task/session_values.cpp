// Tiles of values and of block dtypes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "pipeline/task/session.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"

namespace wasmquant {
// Block dtypes: row by row; exponents, shifts and codes in one stream.
Status TensorSession::run_blocks(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const BlockFloatFormat format = block_float_of(layout.spec.dtype, static_cast<uint32_t>(layout.granularity.block));
  const size_t row_bytes = packing::block_row_bytes(layout.columns, format);
  std::vector<uint8_t> exponents(layout.granularity.blocks()), shifts((layout.columns + 1) / 2);
  std::vector<int8_t> codes(layout.columns);
  values_.resize(layout.columns);
  const uint64_t step = unit_lines();
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    kernels::ErrorSums sums;
    for (uint64_t line = begin; line < std::min(begin + step, tile.end); ++line) {
      const uint64_t in_tile = line - tile.begin;
      const std::span<const float> x = clamped(widened(in_tile * layout.columns, layout.columns), true);
      kernels::quantize_block_float(x, format, exponents.data(), shifts.data(), codes.data());
      kernels::dequantize_block_float(codes, format, exponents.data(), shifts.data(), values_.data());
      const kernels::ErrorSums error = kernels::error_between(x, values_.data());
      TRY_VOID(check(error, layout.granularity, {}, x, 0, values_.data(), line * layout.columns));
      sums.append(error);
      packing::pack_block_row(codes, format, exponents.data(), shifts.data(),
                              slices_.front().data() + in_tile * row_bytes);
    }
    sums_.push_back(sums);
  }
  return {};
}

void TensorSession::simulate(const Granularity& g, std::span<const QParams> qparams, std::span<const float> x,
                             uint64_t begin) {
  const QuantizationSpec& spec = scales_ ? scales_->spec() : task_.layout->spec;
  if (!stages_) return fake_quantize(g, spec, qparams, x, begin, values_.data());
  const QParams other{scales_->second_scale(), 0};
  stages_->numbers_of(other, x, values_.data());
  const std::span<float> y = std::span(values_).first(x.size());
  fake_quantize(g, spec, qparams, y, begin, y.data());
  stages_->values_of(other, y);
}

void TensorSession::store(StorageDtype dtype, uint64_t count, uint8_t* out) {
  const std::span<float> y = std::span(values_).first(count);
  if (saturates())
    for (float& v : y) v = std::fabs(v) > limit_.largest ? std::copysign(limit_.largest, v) : v;
  if (dtype == StorageDtype::F32) {
    std::memcpy(out, y.data(), 4 * count);
    return;
  }
  auto* bits = reinterpret_cast<uint16_t*>(out);
  const bool is_bf16 = dtype == StorageDtype::BF16;
  (is_bf16 ? kernels::narrow_bf16 : kernels::narrow_f16)(y, bits);
  (is_bf16 ? kernels::widen_bf16 : kernels::widen_f16)(std::span(bits, count), y.data());
}

// Values instead of codes: fake-quantized weights and plain casts, both in row tiles.
Status TensorSession::run_values(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const bool is_cast = layout.codes == CodeStorage::cast_values, is_block = info_of(layout.spec.dtype).is_block();
  std::optional<uint64_t> run;
  if (!is_cast) run = layout.run_in_tile();
  const StorageDtype stored = layout.components.front().dtype;
  if (stored != StorageDtype::F32 && stored != StorageDtype::F16 && stored != StorageDtype::BF16)
    return error_at(ErrorCode::argument_invalid, task_.name, "is planned as values of {}; F32, F16 or BF16 is written",
                    info_of(stored).name);
  const uint64_t block = is_block ? layout.columns  // whole lines
                         : run    ? *run * std::max<uint64_t>(kBlockElements / *run, 1)
                                  : kBlockElements;
  const uint64_t step = unit_lines();
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    const uint64_t lines = std::min(step, tile.end - begin);
    const uint64_t in_tile = (begin - tile.begin) * layout.columns, count = lines * layout.columns,
                   in_tensor = begin * layout.columns;
    kernels::ErrorSums sums;
    for (uint64_t at = 0; at < count; at += block) {
      const std::span<const float> x = widened(in_tile + at, std::min(block, count - at));
      if (values_.size() < x.size()) values_.resize(x.size());
      if (is_block) {
        fake_quantize_blocks(layout.granularity, layout.spec, x, values_.data());
      } else if (is_cast) {
        std::copy(x.begin(), x.end(), values_.begin());
      } else if (run) {
        qparams_.resize(x.size() / *run);
        find_scales(x, *run, (in_tensor + at) / *run, in_tensor + at, qparams_);
        simulate(one_scale_per_run(qparams_.size(), *run), qparams_, x, 0);
      } else {
        simulate(layout.granularity, scales_->qparams(), x, in_tensor + at);
      }
      uint8_t* out = slices_.front().data() + (in_tile + at) * (info_of(stored).bits / 8);
      store(stored, x.size(), out);
      const kernels::ErrorSums error = kernels::error_between(x, values_.data());
      sums.append(error);
      if (run) {
        const Granularity g = one_scale_per_run(qparams_.size(), *run);
        TRY_VOID(check(error, g, qparams_, x, 0, values_.data(), in_tensor + at));
      } else {
        const std::span<const QParams> q = scales_ ? scales_->qparams() : std::span<const QParams>();
        TRY_VOID(check(error, layout.granularity, q, x, in_tensor + at, values_.data(), in_tensor + at));
      }
    }
    sums_.push_back(sums);
  }
  return {};
}

}  // namespace wasmquant
