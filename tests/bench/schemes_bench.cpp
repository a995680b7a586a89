// Speed of quantizing by each scheme: one row for each.
#include "schemes_bench.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "observers/statistics/contiguous.h"
#include "pipeline/session/session.h"
#include "quantize/quantize.h"

namespace wasmquant::bench {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr size_t kBlock = 8192, kRow = 4096;  // elements; 32 KiB of float32 stay in the first-level cache

struct Scheme {
  std::string name;
  QuantizationSpec spec;
  size_t length = 0;  // elements of one scale; 0: the whole tensor, a pass for its range comes first
};

QuantizationSpec spec_of(Dtype dtype, QScheme qscheme, size_t length, ScaleFormat format) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.qscheme = qscheme;
  spec.scale_format = format;
  spec.symmetric = info_of(dtype).is_signed || !info_of(dtype).is_integer;
  if (dtype == Dtype::minifloat) spec.exponent_bits = 4, spec.mantissa_bits = 2;
  if (qscheme == QScheme::per_group) spec.ch_axis = -1, spec.group_size = static_cast<int64_t>(length);
  spec.observer = qscheme == QScheme::per_tensor    ? ObserverId::PerTensorMinMaxObserver
                  : qscheme == QScheme::per_channel ? ObserverId::PerChannelMinMaxObserver
                                                    : ObserverId::PerGroupMinMaxObserver;
  return spec;
}

std::vector<Scheme> schemes() {
  std::vector<Scheme> all;
  for (const DtypeInfo& info : kDtypes) {
    const std::string dtype(info.name);
    const auto add = [&](const char* scheme, QScheme qscheme, size_t length, ScaleFormat format) {
      all.push_back({dtype + scheme, spec_of(info.dtype, qscheme, length, format), length});
    };
    if (info.is_plain_cast()) {
      add("", QScheme::per_tensor, kBlock, ScaleFormat::float32);
    } else if (info.is_block()) {
      add("", QScheme::per_group, info.default_block, ScaleFormat::e8m0);
    } else {
      add(" per_tensor", QScheme::per_tensor, 0, ScaleFormat::float32);
      add(" per_channel", QScheme::per_channel, kRow, ScaleFormat::float32);
      add(" per_group 128", QScheme::per_group, 128, ScaleFormat::float32);
      add(" per_group 32", QScheme::per_group, 32, ScaleFormat::float32);
      if (info.dtype == Dtype::int8 || (!info.is_integer && info.dtype != Dtype::minifloat))
        add(" e8m0 32", QScheme::per_group, 32, ScaleFormat::e8m0);
    }
  }
  return all;
}

/// Scales and codes of `x`, block by block; codes of a block replace those before it.
void quantize_all(const Scheme& scheme, std::span<const float> x, std::vector<QParams>& qparams, uint8_t* codes) {
  const QuantizationSpec& spec = scheme.spec;
  if (info_of(spec.dtype).is_block()) {
    const BlockFloatFormat format = block_float_of(spec.dtype, static_cast<uint32_t>(scheme.length));
    for (size_t at = 0; at < x.size(); at += kRow)
      kernels::quantize_block_float(x.subspan(at, kRow), format, codes + kRow, codes + 2 * kRow,
                                    reinterpret_cast<int8_t*>(codes));
    return;
  }
  const size_t length = scheme.length == 0 ? kBlock : scheme.length;
  qparams.resize(kBlock / length);
  if (scheme.length == 0) {  // the range of the whole: the kernel of the observer, and the scale of the last block
    kernels::Extent extent{kMax, -kMax, true};
    for (size_t at = 0; at < x.size(); at += kBlock) {
      const kernels::Extent found = kernels::reduce_extent(x.subspan(at, kBlock));
      extent.min = std::min(extent.min, found.min), extent.max = std::max(extent.max, found.max);
    }
    qparams[0] = ScaleRule(spec)(extent.min, extent.max);
  }
  const Granularity g = one_scale_per_run(kBlock / length, length);
  for (size_t at = 0; at < x.size(); at += kBlock) {
    const std::span<const float> block = x.subspan(at, kBlock);
    if (scheme.length != 0 && !info_of(spec.dtype).is_plain_cast()) observe_contiguous(block, length, spec, qparams);
    quantize(g, spec, qparams, kernels::Path::real, block, 0, codes);
  }
}

}  // namespace

void bench_schemes(std::span<const float> x, std::span<float> copy_of, const std::string& only, size_t rounds,
                   Statistic statistic, bool json) {
  constexpr size_t kRepeats = 64;
  std::vector<QParams> qparams;
  std::vector<uint8_t> codes(kBlock * sizeof(float));
  const auto memory_pass = [&] { std::memcpy(copy_of.data(), x.data(), x.size_bytes()); };
  bool has_title = json;
  for (const Scheme& scheme : schemes()) {
    if (scheme.name.find(only) == std::string::npos) continue;
    if (!has_title) std::printf("%-28s %8s %10s %12s\n", "scheme", "GB/s", "/ memcpy", "in cache");
    has_title = true;
    const std::vector<double> seconds =
        interleaved_seconds({memory_pass, [&] { quantize_all(scheme, x, qparams, codes.data()); },
                             [&] {
                               for (size_t i = 0; i < kRepeats; ++i)
                                 quantize_all(scheme, x.first(kBlock), qparams, codes.data());
                             }},
                            rounds, statistic, 0.1);
    const auto gbps = [](size_t bytes, double s) { return static_cast<double>(bytes) / s * 1e-9; };
    const double rate = gbps(x.size_bytes(), seconds[1]),
                 in_cache = gbps(kRepeats * kBlock * sizeof(float), seconds[2]);
    const double ratio = rate / gbps(x.size_bytes(), seconds[0]);
    std::printf(json ? "{\"name\": \"%s\", \"gbps\": %.3f, \"ratio_to_memcpy\": %.4f, \"gbps_in_cache\": %.3f}\n"
                     : "%-28s %8.2f %10.3f %12.2f\n",
                scheme.name.c_str(), rate, ratio, in_cache);
    std::fflush(stdout);
  }
}

}  // namespace wasmquant::bench
