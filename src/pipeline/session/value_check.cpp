// The search for the first element that is lost, and what is said of it.
#include "pipeline/session/value_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/message.h"
#include "kernels/ggml/ggml_blocks.h"
#include "pipeline/session/tile_source.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

// Advice for values beyond the dtype's range; null if there is none.
const char* wider_dtype(const WeightLayout& layout, StorageDtype dtype) {
  if (dtype != StorageDtype::F16) return nullptr;
  if (layout.codes == CodeStorage::ggml_rows) return "bf16";
  return layout.codes == CodeStorage::cast_values ? "bfloat16" : nullptr;
}

}  // namespace

float ValueCheck::largest_scale() const noexcept {
  return saturates() ? limit_.largest_scale : std::numeric_limits<float>::infinity();
}

std::string ValueCheck::place_of(uint64_t element) const {
  uint64_t columns = task_.layout->columns;
  if (task_.layout->source_transposed) {
    element = element % columns * task_.layout->rows + element / columns;
    columns = task_.layout->rows;
  }
  if (task_.layout->shape.size() < 2) return text_of("at element {}", element);
  return text_of("at element {} (row {}, column {})", element, element / columns, element % columns);
}

Error ValueCheck::not_finite(uint64_t element, float x) const {
  const std::string value = std::isnan(x) ? "NaN" : x > 0 ? "+Infinity" : "-Infinity";
  return error_at(
      ErrorCode::value_not_finite, task_.name,
      "{} {}; weights must be finite. Fix the checkpoint, exclude the layer, or set \"non_finite\": \"saturate\"",
      value, place_of(element));
}

Error ValueCheck::overflow(uint64_t element, float x, const std::string& what) const {
  const char* const wider = wider_dtype(task_.layout, limit_.dtype);
  const std::string advice =
      wider == nullptr ? std::string("Exclude the layer") : text_of("Use {}, exclude the layer", wider);
  return error_at(ErrorCode::value_overflow, task_.name, "{} {} {}. {}, or set \"non_finite\": \"saturate\"", x,
                  place_of(element), what, advice);
}

Error ValueCheck::first_not_finite(const TileRange& tile, TileSource& source) const {
  const uint64_t columns = task_.layout->columns;
  const bool is_columns = task_.layout->column_tiles();
  const uint64_t width = is_columns ? tile.count() : columns, rows = is_columns ? task_.layout->rows : tile.count();
  uint64_t row = 0, column = width;
  float found = 0;
  for (uint64_t r = 0; r < rows && (is_columns || column == width); ++r) {
    const std::span<const float> x = source.values(r * width, width);
    const int64_t at = kernels::find_non_finite(x);
    if (at < 0 || static_cast<uint64_t>(at) >= column) continue;
    row = r;
    column = static_cast<uint64_t>(at);
    found = x[column];
  }
  return not_finite(is_columns ? row * columns + tile.begin + column : (tile.begin + row) * columns + column, found);
}

void ValueCheck::know(std::span<const QParams> scales) noexcept {
  known_to_lose_ = limit_.depends_on_scales() && limit_.may_lose(scales);
}

bool ValueCheck::may_lose(std::span<const QParams> qparams) const noexcept {
  return known_to_lose_ ? *known_to_lose_ : limit_.depends_on_scales() && limit_.may_lose(qparams);
}

Error ValueCheck::lost(uint64_t element, float x, float y, float scale) const {
  if (!std::isfinite(x)) return not_finite(element, x);
  const std::string_view dtype = float_name_of(limit_.dtype);
  if (!limit_.is_beyond(y))
    return overflow(element, x, text_of("needs a larger scale than {}, the largest of its type", scale));
  if (task_.layout->codes == CodeStorage::cast_values)
    return overflow(element, x, text_of("is beyond {}, whose largest value is {}", dtype, limit_.largest));
  return overflow(
      element, x,
      text_of("would be read as a quantized value beyond {}, whose largest value is {}", dtype, limit_.largest));
}

Status ValueCheck::values(const kernels::ErrorSums& sums, const Granularity& g, std::span<const QParams> qparams,
                          std::span<const float> x, uint64_t begin, const float* y, uint64_t element) const {
  if (saturates() || (sums.all_finite() && (qparams.empty() || !may_lose(qparams)))) return {};
  size_t first = x.size();
  float scale = 0;
  const auto look = [&](uint64_t from, uint64_t count, const QParams* q, uint64_t stride) {
    for (uint64_t k = 0; k < count && first == x.size(); ++k) {
      const auto i = static_cast<size_t>(from - begin + k);
      const float own = q == nullptr ? 0 : q[k * stride].scale;
      if (std::isfinite(x[i]) && !limit_.is_lost(x[i], y[i], own)) continue;
      first = i;
      scale = own;
    }
  };
  if (qparams.empty())
    look(begin, x.size(), nullptr, 0);
  else
    for_each_run(g, begin, begin + x.size(),
                 [&](const Run& run) { look(run.begin, run.count, &qparams[run.scale], run.scale_stride); });
  if (first == x.size()) return {};
  return lost(element + first, x[first], y[first], scale);
}

std::span<const float> ValueCheck::clamped(std::span<const float> x, bool infinities,
                                           std::vector<float>& scratch) const {
  if (!saturates() || (limit_.dtype == StorageDtype::F32 && !infinities)) return x;
  const kernels::AbsMax most = kernels::reduce_absmax(x);
  if (most.value <= limit_.largest && (most.all_finite || !infinities)) return x;
  if (x.data() != scratch.data()) scratch.assign(x.begin(), x.end());
  for (float& v : scratch)
    if (std::fabs(v) > limit_.largest && (infinities || std::isfinite(v))) v = std::copysign(limit_.largest, v);
  return std::span<const float>(scratch).first(x.size());
}

Status ValueCheck::blocks(const kernels::ErrorSums& sums, GgmlType type, std::span<const float> x,
                          const uint8_t* blocks, uint64_t element) const {
  if (saturates()) return {};
  const GgmlTypeInfo& info = info_of(type);
  const float largest = largest_value(type);
  const bool is_clipped = kernels::reduce_absmax(x).value > largest;
  if (sums.all_finite() && !is_clipped) return {};
  std::vector<float> read(info.block);
  for (size_t begin = 0; begin < x.size(); begin += info.block) {
    const std::span<const float> block = x.subspan(begin, info.block);
    kernels::dequantize_blocks(type, blocks + info.bytes_of(begin), info.block, read.data());
    if (const int64_t bad = kernels::find_non_finite(block); bad >= 0)
      return not_finite(element + begin + static_cast<uint64_t>(bad), block[static_cast<size_t>(bad)]);
    const auto larger = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    const auto most = static_cast<size_t>(std::max_element(block.begin(), block.end(), larger) - block.begin());
    if (!(std::fabs(block[most]) > largest) && kernels::find_non_finite({read.data(), info.block}) < 0) continue;
    const std::string_view dtype = float_name_of(limit_.dtype);
    const std::string what =
        is_clipped || info.block == 1
            ? text_of("is beyond {}, whose largest value is {}", is_clipped ? info.name : dtype,
                      is_clipped ? largest : limit_.largest)
            : text_of("needs a scale beyond {} in {}, whose largest is {}", dtype, info.name, limit_.largest);
    return overflow(element + begin + most, block[most], what);
  }
  return {};
}

}  // namespace wasmquant
