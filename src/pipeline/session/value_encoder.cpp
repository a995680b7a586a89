#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "pipeline/session/scaled_codes.h"
#include "quantize/block_float.h"

namespace wasmquant {
namespace {

// Values instead of codes: fake-quantized weights and plain casts, both in row tiles.
class ValueEncoder final : public TileEncoder {
 public:
  explicit ValueEncoder(const EncoderInput& in)
      : in_(in),
        codes_of_(in),
        stored_(in.task.layout->components.front().dtype),
        is_cast_(in.task.layout->codes == CodeStorage::cast_values),
        run_(is_cast_ ? std::nullopt : in.task.layout->run_in_tile()) {}

  Status encode(const TileRange& tile, TileOutput& out) override {
    if (stored_ != StorageDtype::F32 && stored_ != StorageDtype::F16 && stored_ != StorageDtype::BF16)
      return error_at(ErrorCode::argument_invalid, in_.task.name,
                      "is planned as values of {}; F32, F16 or BF16 is written", info_of(stored_).name);
    const WeightLayout& layout = in_.task.layout;
    const uint64_t block = info_of(layout.spec.dtype).is_block() ? layout.columns  // whole lines
                           : run_                                ? *run_ * std::max<uint64_t>(kBlockElements / *run_, 1)
                                                                 : kBlockElements;
    const uint64_t step = unit_lines_of(layout), size = info_of(stored_).bits / 8;
    for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
      const uint64_t in_tile = (begin - tile.begin) * layout.columns, in_tensor = begin * layout.columns;
      const uint64_t count = std::min(step, tile.end - begin) * layout.columns;
      kernels::ErrorSums sums;
      for (uint64_t at = 0; at < count; at += block) {
        const std::span<const float> x = in_.source.values(in_tile + at, std::min(block, count - at));
        TRY_VOID(encode_block(x, in_tensor + at, out.slices.front().data() + (in_tile + at) * size, sums));
      }
      out.errors.push_back(sums);
    }
    return {};
  }

 private:
  Status encode_block(std::span<const float> x, uint64_t in_tensor, uint8_t* out, kernels::ErrorSums& sums) {
    const WeightLayout& layout = in_.task.layout;
    values_.resize(x.size());
    Granularity g = layout.granularity;
    std::span<const QParams> qparams = in_.scales ? in_.scales->qparams() : std::span<const QParams>();
    uint64_t first = in_tensor;
    if (info_of(layout.spec.dtype).is_block()) {
      fake_quantize_blocks(g, layout.spec, x, values_.data());
    } else if (is_cast_) {
      std::copy(x.begin(), x.end(), values_.begin());
    } else {
      if (run_) {
        qparams_.resize(x.size() / *run_);
        codes_of_.find_scales(x, *run_, in_tensor / *run_, in_tensor, qparams_);
        qparams = qparams_;
        g = one_scale_per_run(qparams.size(), *run_);
        first = 0;
      }
      codes_of_.simulate(g, qparams, x, first, values_);
    }
    store_values(stored_, values_, in_.check, out);
    const kernels::ErrorSums error = kernels::error_between(x, values_.data());
    sums.append(error);
    return in_.check.values(error, g, qparams, x, first, values_.data(), in_tensor);
  }

  const EncoderInput in_;
  ScaledCodes codes_of_;
  const StorageDtype stored_;
  const bool is_cast_;
  const std::optional<uint64_t> run_;  // elements of a scale, where tiles hold all of each
  std::vector<float> values_;
  std::vector<QParams> qparams_;  // of a block
};

}  // namespace

void store_values(StorageDtype dtype, std::span<float> values, const ValueCheck& check, uint8_t* out) {
  const float largest = check.limit().largest;
  if (check.saturates())
    for (float& v : values) v = std::fabs(v) > largest ? std::copysign(largest, v) : v;
  if (dtype == StorageDtype::F32) {
    std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  auto* bits = reinterpret_cast<uint16_t*>(out);
  const bool is_bf16 = dtype == StorageDtype::BF16;
  (is_bf16 ? kernels::narrow_bf16 : kernels::narrow_f16)(values, bits);
  (is_bf16 ? kernels::widen_bf16 : kernels::widen_f16)(std::span(bits, values.size()), values.data());
}

std::unique_ptr<TileEncoder> value_encoder(const EncoderInput& in) { return std::make_unique<ValueEncoder>(in); }

}  // namespace wasmquant
