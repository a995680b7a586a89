// Speed of matrix products and of what rests on them: one row for each shape.
#include "products_bench.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/hessian.h"
#include "algorithms/linear_algebra.h"
#include "algorithms/rounding/error_feedback.h"
#include "algorithms/rounding/gptq.h"
#include "kernels/matmul.h"

namespace wasmquant::bench {
namespace {

std::vector<float> numbers(size_t count) {
  uint32_t state = 12345;
  std::vector<float> x(count);
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  }
  return x;
}

/// Positive definite: a dominant diagonal.
std::vector<float> definite(size_t n) {
  std::vector<float> a = numbers(n * n);
  for (size_t i = 0; i < n; ++i) a[i * n + i] = static_cast<float>(n);
  return a;
}

struct Product {
  std::string name;
  double operations;
  std::function<void()> run;
};

/// A linear layer: inputs [tokens, in], weight [out, in].
Product layer(std::string name, size_t tokens, size_t out, size_t in) {
  std::vector<float> x = numbers(tokens * in), w = numbers(out * in), y(tokens * out);
  std::vector<float> workspace(kernels::matmul_workspace(tokens, out, in));
  return {std::move(name), 2.0 * static_cast<double>(tokens) * static_cast<double>(out) * static_cast<double>(in),
          [=]() mutable {
            kernels::matmul({x.data(), in, 1}, {w.data(), in, 1}, in, tokens, out, kernels::Update::set,
                            kernels::Region::all, y.data(), out, workspace.data());
          }};
}

std::vector<Product> products() {
  constexpr size_t kSize = 2048, kTokens = 512;
  constexpr double kCube = double{kSize} * kSize * kSize;
  return {
      layer("layer_512x576x256", 512, 576, 256),
      layer("layer_512x2048x2048", kTokens, kSize, kSize),
      layer("layer_256x5632x2048", 256, 5632, 2048),
      {"hessian_512x2048", double{kTokens} * kSize * kSize,  // one triangle
       [x = numbers(kTokens * kSize), hessian = HessianAccumulator(kSize)]() mutable {
         (void)hessian.add(x, kTokens);
       }},
      {"cholesky_2048", kCube / 3,
       [a = definite(kSize), r = std::vector<float>()]() mutable {
         r = a;
         factor_cholesky(r, kSize);
       }},
      {"invert_upper_2048", kCube / 3,
       [a = definite(kSize), r = std::vector<float>()]() mutable {
         r = a;
         for (size_t i = 0; i < kSize; ++i) std::fill_n(r.data() + i * kSize, i, 0.0f);
         invert_upper(r, kSize, 0, kSize);
       }},
  };
}

/// One layer of 2048 x 2048 from a ready Hessian to codes: factor, then GPTQ in groups of 128
/// (tests/bench/torch_gptq.py does the same under torch).
Product gptq_layer() {
  constexpr size_t kSize = 2048, kTokens = 4096;
  HessianAccumulator accumulated(kSize);
  (void)accumulated.add(numbers(kTokens * kSize), kTokens);
  Result<std::vector<float>> hessian = std::move(accumulated).finish();
  if (!hessian) std::abort();
  QuantizationSpec spec;
  spec.dtype = Dtype::int4;
  spec.qscheme = QScheme::per_group;
  spec.ch_axis = 1;
  spec.group_size = 128;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  return {"gptq_2048x2048_g128", 0,
          [spec, hessian = std::move(*hessian), weight = numbers(kSize * kSize),
           codes = std::vector<uint8_t>(kSize * kSize)]() mutable {
            const Result<ErrorFeedback> feedback = error_feedback_of(hessian, kSize, 0.01, false);
            std::vector<float> values = weight;
            const bool is_done = feedback && gptq(*feedback, spec, {.desc_act = false}, kSize, values, codes);
            if (!is_done) std::abort();
          }};
}

}  // namespace

void bench_products(const std::string& only, size_t rounds, Statistic statistic, bool json) {
  bool has_title = json;
  for (Product& product : products()) {
    if (product.name.find(only) == std::string::npos) continue;
    if (!has_title) std::printf("%-28s %8s\n", "product", "GFLOP/s");
    has_title = true;
    const double gflops = product.operations / interleaved_seconds({product.run}, rounds, statistic)[0] * 1e-9;
    std::printf(json ? "{\"name\": \"%s\", \"gflops\": %.2f}\n" : "%-28s %8.1f\n", product.name.c_str(), gflops);
    std::fflush(stdout);
  }
  Product gptq = gptq_layer();
  if (gptq.name.find(only) == std::string::npos) return;
  const double seconds = interleaved_seconds({gptq.run}, std::min<size_t>(rounds, 3), statistic, 0)[0];
  std::printf(json ? "{\"name\": \"%s\", \"seconds\": %.3f}\n" : "%-28s %8.2f s\n", gptq.name.c_str(), seconds);
}

}  // namespace wasmquant::bench
