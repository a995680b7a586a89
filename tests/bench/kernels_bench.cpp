// Speed of the kernels beside memcpy and beside their scalar oracles, single thread. The same source runs natively
// (WASMQUANT_SIMD chooses the instruction set) and in WebAssembly.
//   kernels_bench [--json] [--mib N] [--rounds N] [--only SUBSTRING] [--fastest]
// Times are medians, or with --fastest the fastest round, which says more on a machine that does other work too.
// GB/s counts the bytes a row reads of its main input (float32, or 16-bit floats for widening). --json prints one line
// per row: {name, gbps, ratio_to_memcpy, ratio_to_reference}.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/arch.h"
#include "kernels/reference.h"
#include "timing.h"

namespace wasmquant::bench {
namespace {

constexpr size_t kGroup = 128, kBlock = 1024;

struct Buffers {
  explicit Buffers(size_t count)
      : x(count), y(count), low(count), high(count), halves(count), codes(count), bytes(count / 2) {
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
  std::vector<uint16_t> halves;
  std::vector<uint8_t> codes, bytes;
};

kernels::Affine affine_of(float scale, float zero_point, float quant_min, float quant_max) {
  return {scale, 1.0f / scale, zero_point, quant_min, quant_max};
}

/// The kernels and their oracles behind one face, so that a row is written once.
struct Fast {
  static constexpr auto reduce_absmax = kernels::reduce_absmax;
  static constexpr auto quantize_codes8 = kernels::quantize_codes8;
  static constexpr auto pack_nibbles = kernels::pack_nibbles;
  static constexpr auto dequantize_codes8 = kernels::dequantize_codes8;
  static constexpr auto error_between = kernels::error_between;
};
struct Oracle {
  static constexpr auto reduce_absmax = kernels::reference::reduce_absmax;
  static constexpr auto quantize_codes8 = kernels::reference::quantize_codes8;
  static constexpr auto pack_nibbles = kernels::reference::pack_nibbles;
  static constexpr auto dequantize_codes8 = kernels::reference::dequantize_codes8;
  static constexpr auto error_between = kernels::reference::error_between;
};

volatile double g_sink;  // keeps results alive

/// int4, one symmetric scale per 128 elements: range, codes, nibbles; optionally the error, a block at a time.
template <class Kernels>
void quantize_int4_groups(Buffers& b, size_t count, bool with_error) {
  kernels::ErrorSums error;
  for (size_t block = 0; block < count; block += kBlock) {
    float* y = b.y.data();
    for (size_t begin = block; begin < block + kBlock; begin += kGroup) {
      const std::span<const float> x{b.x.data() + begin, kGroup};
      const kernels::AbsMax range = Kernels::reduce_absmax(x);
      const kernels::Affine a = affine_of(range.value > 0 ? range.value / 7.5f : 1.0f, 0, -8, 7);
      uint8_t* codes = b.codes.data() + begin;
      Kernels::quantize_codes8(x, a, RoundMethod::half_even, kernels::Path::real, codes);
      Kernels::pack_nibbles({codes, kGroup}, 8, b.bytes.data() + begin / 2);
      if (with_error) Kernels::dequantize_codes8({codes, kGroup}, true, a, y + begin - block);
    }
    if (with_error) error.append(Kernels::error_between({b.x.data() + block, kBlock}, y));
  }
  g_sink = error.noise;
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
  constexpr RoundMethod kRound = RoundMethod::half_even;
  const auto x = [&b](size_t n) { return std::span<const float>(b.x.data(), n); };
  const auto halves = [&b](size_t n) { return std::span<const uint16_t>(b.halves.data(), n); };
  const auto codes = [&b](size_t n) { return std::span<const uint8_t>(b.codes.data(), n); };
  return {
      {"absmax", 4, [=](size_t n) { g_sink = k::reduce_absmax(x(n)).value; },
       [=](size_t n) { g_sink = r::reduce_absmax(x(n)).value; }},
      {"extent", 4, [=](size_t n) { g_sink = k::reduce_extent(x(n)).max; },
       [=](size_t n) { g_sink = r::reduce_extent(x(n)).max; }},
      {"accumulate_extent", 4, [=, &b](size_t n) { k::accumulate_extent(x(n), b.low.data(), b.high.data()); },
       [=, &b](size_t n) { r::accumulate_extent(x(n), b.low.data(), b.high.data()); }},
      {"quantize_int8", 4, [=, &b](size_t n) { k::quantize_codes8(x(n), int8, kRound, k::Path::real, b.codes.data()); },
       [=, &b](size_t n) { r::quantize_codes8(x(n), int8, kRound, k::Path::real, b.codes.data()); }},
      {"quantize_int16", 4,
       [=, &b](size_t n) { k::quantize_codes16(x(n), int8, kRound, k::Path::real, b.halves.data()); },
       [=, &b](size_t n) { r::quantize_codes16(x(n), int8, kRound, k::Path::real, b.halves.data()); }},
      {"fake_quantize_int8", 4, [=, &b](size_t n) { k::fake_quantize_int(x(n), int8, kRound, b.y.data()); },
       [=, &b](size_t n) { r::fake_quantize_int(x(n), int8, kRound, b.y.data()); }},
      {"dequantize_int8", 4, [=, &b](size_t n) { k::dequantize_codes8(codes(n), true, int8, b.y.data()); },
       [=, &b](size_t n) { r::dequantize_codes8(codes(n), true, int8, b.y.data()); }},
      {"int4_g128_pack", 4, [&b](size_t n) { quantize_int4_groups<Fast>(b, n, false); },
       [&b](size_t n) { quantize_int4_groups<Oracle>(b, n, false); }},
      {"int4_g128_pack_error", 4, [&b](size_t n) { quantize_int4_groups<Fast>(b, n, true); },
       [&b](size_t n) { quantize_int4_groups<Oracle>(b, n, true); }},
      {"error_of_codes8", 4, [=, &b](size_t n) { g_sink = k::error_of_codes8(x(n), b.codes.data(), true, int8).noise; },
       [=, &b](size_t n) { g_sink = r::error_of_codes8(x(n), b.codes.data(), true, int8).noise; }},
      {"error_between", 4, [=, &b](size_t n) { g_sink = k::error_between(x(n), b.y.data()).noise; },
       [=, &b](size_t n) { g_sink = r::error_between(x(n), b.y.data()).noise; }},
      {"quantize_fp8_e4m3", 4, [=, &b](size_t n) { k::quantize_fp8(x(n), 0.0002f, Dtype::fp8_e4m3, b.codes.data()); },
       [=, &b](size_t n) { r::quantize_fp8(x(n), 0.0002f, Dtype::fp8_e4m3, b.codes.data()); }},
      {"dequantize_fp8_e4m3", 4,
       [=, &b](size_t n) { k::dequantize_fp8(codes(n), 0.0002f, Dtype::fp8_e4m3, b.y.data()); },
       [=, &b](size_t n) { r::dequantize_fp8(codes(n), 0.0002f, Dtype::fp8_e4m3, b.y.data()); }},
      {"widen_bf16", 2, [=, &b](size_t n) { k::widen_bf16(halves(n), b.y.data()); },
       [=, &b](size_t n) { r::widen_bf16(halves(n), b.y.data()); }},
      {"widen_f16", 2, [=, &b](size_t n) { k::widen_f16(halves(n), b.y.data()); },
       [=, &b](size_t n) { r::widen_f16(halves(n), b.y.data()); }},
      {"narrow_bf16", 4, [=, &b](size_t n) { k::narrow_bf16(x(n), b.halves.data()); },
       [=, &b](size_t n) { r::narrow_bf16(x(n), b.halves.data()); }},
      {"narrow_f16", 4, [=, &b](size_t n) { k::narrow_f16(x(n), b.halves.data()); },
       [=, &b](size_t n) { r::narrow_f16(x(n), b.halves.data()); }},
  };
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
    std::printf("%-22s %8s %10s %12s\n", "kernel", "GB/s", "/ memcpy", "/ reference");
  }
  for (const Row& row : rows_of(buffers)) {
    if (row.name.find(options.only) == std::string::npos) continue;
    const std::vector<double> seconds = interleaved_seconds(
        {memory_pass, [&] { row.kernel(count); }, [&] { row.reference(piece); }}, options.rounds, options.statistic);
    const auto gbps = [](size_t bytes, double s) { return static_cast<double>(bytes) / s * 1e-9; };
    const double copy = gbps(count * sizeof(float), seconds[0]);
    const double kernel = gbps(count * row.bytes_per_element, seconds[1]);
    const double reference = gbps(piece * row.bytes_per_element, seconds[2]);
    if (options.json)
      std::printf("{\"name\": \"%s\", \"gbps\": %.3f, \"ratio_to_memcpy\": %.4f, \"ratio_to_reference\": %.3f}\n",
                  row.name.c_str(), kernel, kernel / copy, kernel / reference);
    else
      std::printf("%-22s %8.2f %10.3f %12.2f   (memcpy %.1f)\n", row.name.c_str(), kernel, kernel / copy,
                  kernel / reference, copy);
    std::fflush(stdout);
  }
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
