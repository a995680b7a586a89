// Speed of the kernels beside memcpy and beside their scalar oracles, single thread. The same source runs natively
// (WASMQUANT_SIMD chooses the instruction set) and in WebAssembly.
//   kernels_bench [--json] [--mib N] [--rounds N] [--only SUBSTRING] [--fastest]
// Times are medians, or with --fastest the fastest round, which says more on a machine that does other work too.
// GB/s counts the bytes a row reads of its main input (float32, or 16-bit floats for widening). --json prints one line
// per row: {name, gbps, ratio_to_memcpy, gbps_in_cache, ratio_to_reference}; gbps_in_cache is the same work over and
// over on 32 KiB, which no memory holds up. Every dtype and scheme follows (schemes_bench.h), then products
// (products_bench.h).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/arch.h"
#include "kernels/ggml/ggml_blocks.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/reference_search.h"
#include "observers/registry.h"
#include "observers/statistics/histogram.h"
#include "products_bench.h"
#include "quantize/qparams.h"
#include "schemes_bench.h"
#include "timing.h"

namespace wasmquant::bench {
namespace {

constexpr size_t kBlock = 1024, kRow = 4096, kChannel = 1024, kOneRun = size_t{1} << 30;
constexpr size_t kCached = 8192, kRepeats = 64;  // elements of 32 KiB, and how often in one round

kernels::Affine affine_of(float scale, float zero_point, float quant_min, float quant_max) {
  return {scale, 1.0f / scale, zero_point, quant_min, quant_max};
}

struct Buffers {
  explicit Buffers(size_t count)
      : x(count), y(count), low(count), high(count), halves(count), codes(count), bytes(count / 2) {
    for (size_t i = 0; i < count / kChannel; ++i)
      grids.push_back(affine_of(0.0004f + 1e-6f * static_cast<float>(i % 100), 0, -128, 127));
    uint32_t state = 12345;  // sums of uniform numbers: bell-shaped like weights, about 0.02 wide
    for (float& v : x) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        state = state * 1664525u + 1013904223u;
        sum += static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
      }
      v = sum * 0.035f;
    }
    kernels::reference::narrow_bf16(x, halves.data());
  }
  std::vector<float> x, y, low, high;
  std::vector<float> importance = std::vector<float>(kRow, 1.0f);
  std::vector<uint16_t> halves;
  std::vector<uint8_t> codes, bytes;
  std::vector<kernels::Affine> grids;  // one per channel
};

/// The kernels and their oracles behind one face, so that a row is written once.
struct Fast {
  static constexpr auto reduce_absmax_runs = kernels::reduce_absmax_runs;
  static constexpr auto quantize_codes8 = kernels::quantize_codes8;
  static constexpr auto quantize_float = kernels::quantize_float;
  static constexpr auto pack_nibbles = kernels::pack_nibbles;
  static constexpr auto dequantize_codes8 = kernels::dequantize_codes8;
  static constexpr auto error_between = kernels::error_between;
};
struct Oracle {
  static constexpr auto reduce_absmax_runs = kernels::reference::reduce_absmax_runs;
  static constexpr auto quantize_codes8 = kernels::reference::quantize_codes8;
  static constexpr auto quantize_float = kernels::reference::quantize_float;
  static constexpr auto pack_nibbles = kernels::reference::pack_nibbles;
  static constexpr auto dequantize_codes8 = kernels::reference::dequantize_codes8;
  static constexpr auto error_between = kernels::reference::error_between;
};

volatile double g_sink;  // keeps results alive

enum class Work : uint8_t { codes, pack, pack_and_error };

/// Groups of consecutive elements, as the pipeline does them: magnitudes, scales, codes, nibbles and error of a block
/// that stays in the first-level cache.
template <class Kernels>
void quantize_groups(Buffers& b, size_t count, const QuantizationSpec& spec, Work work) {
  const ScaleRule rule(spec);
  const AffineRule grid_of(spec);
  const bool is_integer = info_of(spec.dtype).is_integer;
  const auto group = static_cast<size_t>(spec.group_size);
  kernels::ErrorSums error;
  for (size_t block = 0; block < count; block += kBlock) {
    const std::span<const float> x{b.x.data() + block, kBlock};
    uint8_t* codes = b.codes.data() + block;
    float magnitude[kBlock / 16], scale[kBlock / 16];
    kernels::Affine grid[kBlock / 16];
    Kernels::reduce_absmax_runs(x, group, magnitude);
    for (size_t i = 0; i < kBlock / group; ++i) {
      const QParams q = rule(-magnitude[i], magnitude[i]);
      scale[i] = q.scale;
      if (is_integer) grid[i] = grid_of(q);
    }
    if (is_integer)
      Kernels::quantize_codes8(x, grid, group, RoundMethod::half_even, kernels::Path::real, codes);
    else
      Kernels::quantize_float(x, scale, group, float_format_of(spec), codes);
    if (work != Work::codes) Kernels::pack_nibbles({codes, kBlock}, is_integer ? 8 : 0, b.bytes.data() + block / 2);
    if (work == Work::pack_and_error) {
      Kernels::dequantize_codes8({codes, kBlock}, true, grid, group, b.y.data());
      error.append(Kernels::error_between(x, b.y.data()));
    }
  }
  g_sink = error.noise;
}

QuantizationSpec group_spec(Dtype dtype, int64_t group, ScaleFormat format) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.qscheme = QScheme::per_group;
  spec.ch_axis = -1;
  spec.group_size = group;
  spec.scale_format = format;
  return spec;
}

/// Block floats in rows of kRow elements.
template <class Kernel>
void quantize_rows(std::span<const float> x, Kernel kernel, Buffers& b, Dtype dtype = Dtype::mx9, uint32_t block = 16) {
  const BlockFloatFormat format = block_float_of(dtype, block);
  for (size_t at = 0; at < x.size(); at += kRow)
    kernel(x.subspan(at, kRow), format, b.bytes.data(), b.bytes.data() + kRow,
           reinterpret_cast<int8_t*>(b.codes.data() + at));
}

/// A whole observer over rows of kRow elements, in tiles, in as many passes as it takes.
void observe_rows(Buffers& b, size_t count, const QuantizationSpec& spec) {
  constexpr size_t kTile = size_t{1} << 16;
  const auto observer = make_observer(spec);
  for (uint32_t pass = 1; pass <= observer->passes(); ++pass) {
    if (pass == 2 && !observer->next_pass()) return;
    if (!observer->begin(0, {count / kRow, kRow})) return;
    for (size_t at = 0; at < count; at += kTile) observer->update({b.x.data() + at, std::min(kTile, count - at)}, at);
  }
  if (const auto found = observer->finish()) g_sink = found->qparams[0].scale;
}

void count_histogram(Buffers& b, size_t count, bool is_fast) {
  Histogram histogram;
  histogram.of_magnitudes = true;
  histogram.open(0, 0.07, 2048);
  const std::span<const float> x(b.x.data(), count);
  if (is_fast) {
    histogram.add(x);
  } else {
    std::vector<uint32_t> bins(count);
    kernels::reference::find_bins(x, {0, histogram.bins_per_unit(), 2047, true}, bins.data());
    for (const uint32_t bin : bins) ++histogram.counts[bin];
  }
  g_sink = static_cast<double>(histogram.counts[0]);
}

/// The squared errors of 112 grids over each group of 128 elements.
template <class Kernel>
void search_groups(Buffers& b, size_t count, Kernel kernel) {
  constexpr size_t kGroup = 128, kGrids = 112;
  std::vector<float> scale(kGrids), inverse(kGrids), low(kGrids, -8), high(kGrids, 7), errors(kGrids);
  for (size_t i = 0; i < kGrids; ++i) inverse[i] = 1 / (scale[i] = 0.0001f * static_cast<float>(i + 1));
  const kernels::SearchGrids grids{scale.data(), inverse.data(), low.data(), high.data(), kGrids};
  for (size_t at = 0; at < count; at += kGroup) kernel({b.x.data() + at, kGroup}, nullptr, grids, errors.data());
  g_sink = errors[0];
}

QuantizationSpec observer_spec(ObserverId observer, bool symmetric = true) {
  QuantizationSpec spec = group_spec(symmetric ? Dtype::int4 : Dtype::uint4, 128, ScaleFormat::float32);
  spec.symmetric = symmetric;
  spec.observer = observer;
  spec.qscheme = info_of(observer).qscheme;
  if (spec.qscheme == QScheme::per_channel) spec.ch_axis = 0;
  return spec;
}

struct Row {
  std::string name;
  size_t bytes_per_element;
  std::function<void(size_t)> kernel, reference;  // over that many elements
};

std::vector<Row> rows_of(Buffers& b) {
  namespace k = kernels;
  namespace r = kernels::reference;
  const k::Affine int8 = affine_of(0.0005f, 0, -128, 127);
  const FloatFormat fp8 = float_format_of(Dtype::fp8_e4m3), fp6 = float_format_of(Dtype::fp6_e3m2);
  static constexpr float scale = 0.0002f;
  constexpr RoundMethod kRound = RoundMethod::half_even;
  const auto groups = [&b](std::string name, const QuantizationSpec& spec, Work work) {
    return Row{std::move(name), 4, [&b, spec, work](size_t n) { quantize_groups<Fast>(b, n, spec, work); },
               [&b, spec, work](size_t n) { quantize_groups<Oracle>(b, n, spec, work); }};
  };
  // Beside themselves: there is no oracle of a whole observer.
  const auto observer = [&b](std::string name, const QuantizationSpec& spec) {
    const auto pass = [&b, spec](size_t n) { observe_rows(b, n, spec); };
    return Row{std::move(name), 4, pass, pass};
  };
  const auto x = [&b](size_t n) { return std::span<const float>(b.x.data(), n); };
  const auto halves = [&b](size_t n) { return std::span<const uint16_t>(b.halves.data(), n); };
  const auto codes = [&b](size_t n) { return std::span<const uint8_t>(b.codes.data(), n); };
  std::vector<Row> rows = {
      {"absmax", 4, [=](size_t n) { g_sink = k::reduce_absmax(x(n)).value; },
       [=](size_t n) { g_sink = r::reduce_absmax(x(n)).value; }},
      {"extent", 4, [=](size_t n) { g_sink = k::reduce_extent(x(n)).max; },
       [=](size_t n) { g_sink = r::reduce_extent(x(n)).max; }},
      {"accumulate_extent", 4, [=, &b](size_t n) { k::accumulate_extent(x(n), b.low.data(), b.high.data()); },
       [=, &b](size_t n) { r::accumulate_extent(x(n), b.low.data(), b.high.data()); }},
      {"quantize_int8", 4,
       [=, &b](size_t n) { k::quantize_codes8(x(n), &int8, kOneRun, kRound, k::Path::real, b.codes.data()); },
       [=, &b](size_t n) { r::quantize_codes8(x(n), &int8, kOneRun, kRound, k::Path::real, b.codes.data()); }},
      {"quantize_int16", 4,
       [=, &b](size_t n) { k::quantize_codes16(x(n), &int8, kOneRun, kRound, k::Path::real, b.halves.data()); },
       [=, &b](size_t n) { r::quantize_codes16(x(n), &int8, kOneRun, kRound, k::Path::real, b.halves.data()); }},
      {"fake_quantize_int8", 4, [=, &b](size_t n) { k::fake_quantize_int(x(n), &int8, kOneRun, kRound, b.y.data()); },
       [=, &b](size_t n) { r::fake_quantize_int(x(n), &int8, kOneRun, kRound, b.y.data()); }},
      {"fake_quantize_int8_channels", 4,
       [=, &b](size_t n) { k::fake_quantize_int(x(n), b.grids.data(), kChannel, kRound, b.y.data()); },
       [=, &b](size_t n) { r::fake_quantize_int(x(n), b.grids.data(), kChannel, kRound, b.y.data()); }},
      {"dequantize_int8", 4, [=, &b](size_t n) { k::dequantize_codes8(codes(n), true, &int8, kOneRun, b.y.data()); },
       [=, &b](size_t n) { r::dequantize_codes8(codes(n), true, &int8, kOneRun, b.y.data()); }},
      groups("int4_g128_pack", group_spec(Dtype::int4, 128, ScaleFormat::float32), Work::pack),
      groups("int4_g32_pack", group_spec(Dtype::int4, 32, ScaleFormat::float32), Work::pack),
      groups("int4_g128_pack_error", group_spec(Dtype::int4, 128, ScaleFormat::float32), Work::pack_and_error),
      groups("mxfp4_pack", group_spec(Dtype::fp4, 32, ScaleFormat::e8m0), Work::pack),
      groups("mxfp6_e2m3", group_spec(Dtype::fp6_e2m3, 32, ScaleFormat::e8m0), Work::codes),
      groups("mxfp8_e4m3", group_spec(Dtype::fp8_e4m3, 32, ScaleFormat::e8m0), Work::codes),
      {"mx9", 4, [=, &b](size_t n) { quantize_rows(x(n), k::quantize_block_float, b); },
       [=, &b](size_t n) { quantize_rows(x(n), r::quantize_block_float, b); }},
      {"mx6_b32", 4, [=, &b](size_t n) { quantize_rows(x(n), k::quantize_block_float, b, Dtype::mx6, 32); },
       [=, &b](size_t n) { quantize_rows(x(n), r::quantize_block_float, b, Dtype::mx6, 32); }},
      {"error_between", 4, [=, &b](size_t n) { g_sink = k::error_between(x(n), b.y.data()).noise; },
       [=, &b](size_t n) { g_sink = r::error_between(x(n), b.y.data()).noise; }},
      {"quantize_fp8_e4m3", 4, [=, &b](size_t n) { k::quantize_float(x(n), &scale, kOneRun, fp8, b.codes.data()); },
       [=, &b](size_t n) { r::quantize_float(x(n), &scale, kOneRun, fp8, b.codes.data()); }},
      {"quantize_fp6_e3m2", 4, [=, &b](size_t n) { k::quantize_float(x(n), &scale, kOneRun, fp6, b.codes.data()); },
       [=, &b](size_t n) { r::quantize_float(x(n), &scale, kOneRun, fp6, b.codes.data()); }},
      {"fake_quantize_fp8_e4m3", 4,
       [=, &b](size_t n) { k::fake_quantize_float(x(n), &scale, kOneRun, fp8, b.y.data()); },
       [=, &b](size_t n) { r::fake_quantize_float(x(n), &scale, kOneRun, fp8, b.y.data()); }},
      {"dequantize_fp8_e4m3", 4, [=, &b](size_t n) { k::dequantize_float(codes(n), &scale, kOneRun, fp8, b.y.data()); },
       [=, &b](size_t n) { r::dequantize_float(codes(n), &scale, kOneRun, fp8, b.y.data()); }},
      {"exponentials", 4, [=, &b](size_t n) { g_sink = k::exponentials(x(n), 0.5f, b.y.data()); },
       [=, &b](size_t n) { g_sink = r::exponentials(x(n), 0.5f, b.y.data()); }},
      {"activate_gate_silu", 4,
       [=, &b](size_t n) {
         std::memcpy(b.y.data(), b.x.data(), n * sizeof(float));
         k::activate_gate(k::Activation::silu, {b.y.data(), n}, b.x.data());
       },
       [=, &b](size_t n) {
         std::memcpy(b.y.data(), b.x.data(), n * sizeof(float));
         r::activate_gate(k::Activation::silu, {b.y.data(), n}, b.x.data());
       }},
      {"widen_bf16", 2, [=, &b](size_t n) { k::widen_bf16(halves(n), b.y.data()); },
       [=, &b](size_t n) { r::widen_bf16(halves(n), b.y.data()); }},
      {"widen_f16", 2, [=, &b](size_t n) { k::widen_f16(halves(n), b.y.data()); },
       [=, &b](size_t n) { r::widen_f16(halves(n), b.y.data()); }},
      {"histogram", 4, [&b](size_t n) { count_histogram(b, n, true); },
       [&b](size_t n) { count_histogram(b, n, false); }},
      {"search_errors_int4_g128", 4, [&b](size_t n) { search_groups(b, n, k::search_errors); },
       [&b](size_t n) { search_groups(b, n, r::search_errors); }},
      observer("observe_channel_min_max", observer_spec(ObserverId::PerChannelMinMaxObserver)),
      observer("observe_percentile", observer_spec(ObserverId::PerTensorPercentileObserver)),
      observer("observe_int4_g128_mse", observer_spec(ObserverId::PerGroupMSEObserver)),
      observer("observe_uint4_g128_mse", observer_spec(ObserverId::PerGroupMSEObserver, false)),
      observer("observe_int4_channel_mse", observer_spec(ObserverId::PerChannelMSEObserver)),
      observer("observe_uint4_g128_hqq", observer_spec(ObserverId::HQQObserver, false)),
      {"narrow_bf16", 4, [=, &b](size_t n) { k::narrow_bf16(x(n), b.halves.data()); },
       [=, &b](size_t n) { r::narrow_bf16(x(n), b.halves.data()); }},
      {"narrow_f16", 4, [=, &b](size_t n) { k::narrow_f16(x(n), b.halves.data()); },
       [=, &b](size_t n) { r::narrow_f16(x(n), b.halves.data()); }},
  };
  const auto out = [](Buffers& buffers) { return reinterpret_cast<uint8_t*>(buffers.y.data()); };
  for (const GgmlTypeInfo& info : kGgmlTypes) {  // rows of one length: every block type divides kRow
    if (!info.can_quantize() || info.block == 1) continue;
    const GgmlType type = info.type;
    rows.push_back({"blocks_" + std::string(info.name), 4,
                    [=, &b](size_t n) { k::quantize_blocks(type, b.x.data(), n / kRow, kRow, nullptr, out(b)); },
                    [=, &b](size_t n) { r::quantize_blocks(type, b.x.data(), n / kRow, kRow, nullptr, out(b)); }});
  }
  for (const GgmlType type : {GgmlType::q4_0, GgmlType::q8_0, GgmlType::q4_k, GgmlType::iq4_nl}) {
    const auto values = [=, &b](size_t n) {  // whatever the bits say
      k::dequantize_blocks(type, reinterpret_cast<const uint8_t*>(b.halves.data()), n, b.y.data());
    };
    rows.push_back({"values_" + std::string(info_of(type).name), 4, values, values});
  }
  for (const GgmlType type : {GgmlType::q4_k, GgmlType::q6_k})
    rows.push_back(
        {"blocks_" + std::string(info_of(type).name) + "_weighted", 4,
         [=, &b](size_t n) { k::quantize_blocks(type, b.x.data(), n / kRow, kRow, b.importance.data(), out(b)); },
         [=, &b](size_t n) { r::quantize_blocks(type, b.x.data(), n / kRow, kRow, b.importance.data(), out(b)); }});
  return rows;
}

struct Options {
  bool json = false;
  Statistic statistic = Statistic::median;
  size_t mib = 16, rounds = 15;
  std::string only;
};

/// False on a wrong argument.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--json") {
      options.json = true;
    } else if (name == "--fastest") {
      options.statistic = Statistic::fastest;
    } else if (i + 1 < argc && (name == "--mib" || name == "--rounds")) {
      const size_t value = std::strtoul(argv[++i], nullptr, 10);
      if (value == 0) return false;
      (name == "--mib" ? options.mib : options.rounds) = value;
    } else if (i + 1 < argc && name == "--only") {
      options.only = argv[++i];
    } else {
      return false;
    }
  }
  return true;
}

int bench_kernels(const Options& options) {
  const size_t count = options.mib << 18, piece = std::min<size_t>(count, 1 << 14);
  Buffers buffers(count);
  const auto memory_pass = [&] { std::memcpy(buffers.y.data(), buffers.x.data(), count * sizeof(float)); };
  if (!options.json) {
    std::printf("%s, %zu MiB of float32, %s of %zu interleaved rounds\n",
                kernels::name_of(kernels::active_arch()).data(), options.mib,
                options.statistic == Statistic::fastest ? "fastest" : "median", options.rounds);
    std::printf("%-28s %8s %10s %12s\n", "kernel", "GB/s", "/ memcpy", "/ reference");
  }
  for (const Row& row : rows_of(buffers)) {
    if (row.name.find(options.only) == std::string::npos) continue;
    const std::vector<double> seconds =
        interleaved_seconds({memory_pass, [&] { row.kernel(count); }, [&] { row.reference(piece); },
                             [&] {
                               for (size_t i = 0; i < kRepeats; ++i) row.kernel(kCached);
                             }},
                            options.rounds, options.statistic);
    const auto gbps = [](size_t bytes, double s) { return static_cast<double>(bytes) / s * 1e-9; };
    const double copy = gbps(count * sizeof(float), seconds[0]);
    const double kernel = gbps(count * row.bytes_per_element, seconds[1]);
    const double in_cache = gbps(kRepeats * kCached * row.bytes_per_element, seconds[3]);
    const double reference = gbps(piece * row.bytes_per_element, seconds[2]);
    if (options.json)
      std::printf(
          "{\"name\": \"%s\", \"gbps\": %.3f, \"ratio_to_memcpy\": %.4f, \"gbps_in_cache\": %.3f, "
          "\"ratio_to_reference\": %.3f}\n",
          row.name.c_str(), kernel, kernel / copy, in_cache, kernel / reference);
    else
      std::printf("%-28s %8.2f %10.3f %12.2f   (memcpy %.1f)\n", row.name.c_str(), kernel, kernel / copy,
                  kernel / reference, copy);
    std::fflush(stdout);
  }
  bench_schemes(buffers.x, buffers.y, options.only, options.rounds, options.statistic, options.json);
  bench_products(options.only, options.rounds, options.statistic, options.json);
  return 0;
}

}  // namespace
}  // namespace wasmquant::bench

int main(int argc, char** argv) {
  wasmquant::bench::Options options;
  if (!wasmquant::bench::parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: kernels_bench [--json] [--mib N] [--rounds N] [--only SUBSTRING] [--fastest]\n");
    return 2;
  }
  return wasmquant::bench::bench_kernels(options);
}
