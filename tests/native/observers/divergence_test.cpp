// Ranges by divergence. The expected bins come from an implementation apart from this one, in Python.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "observers/registry.h"
#include "observers/statistics/histogram_range.h"

using namespace wasmquant;

namespace {

enum class Shape { peak, comb, decay };

uint64_t count_at(Shape shape, int distance, size_t bin, bool is_end) {
  switch (shape) {
    case Shape::peak:
      return static_cast<uint64_t>(100000 / (1 + distance * distance));
    case Shape::comb:
      return static_cast<uint64_t>(std::max(0, 3000 - 4 * std::abs(distance))) * (bin % 3) + (is_end ? 1 : 0);
    case Shape::decay:
      return static_cast<uint64_t>(1e5 * std::exp2(-std::abs(distance) / 40.0));
  }
  return 0;
}

// Bins of width 1 around 0; with `is_half` those from 0 on.
Histogram histogram_of(Shape shape, int bins, bool is_half) {
  Histogram h;
  h.low = is_half ? 0 : -bins / 2;
  h.high = bins / 2;
  h.of_magnitudes = is_half;
  for (int i = is_half ? bins / 2 : 0; i < bins; ++i)
    h.counts.push_back(count_at(shape, i - bins / 2, static_cast<size_t>(i), i == 0 || i == bins - 1));
  h.counts.push_back(0);
  return h;
}

}  // namespace

TEST_CASE("entropy: the range whose quantized distribution is nearest") {
  struct Expected {
    int bins;
    Shape shape;
    uint32_t quantized_bins;
    float first, end;
  };
  for (const Expected& e : {Expected{256, Shape::peak, 16, 86, 171}, Expected{256, Shape::peak, 128, 64, 193},
                            Expected{256, Shape::comb, 16, 0, 256}, Expected{256, Shape::decay, 128, 0, 256},
                            Expected{512, Shape::peak, 16, 214, 299}, Expected{512, Shape::peak, 128, 192, 321},
                            Expected{512, Shape::decay, 16, 0, 512}}) {
    const float middle = static_cast<float>(e.bins / 2);
    float min = -middle, max = middle;
    choose_entropy(histogram_of(e.shape, e.bins, false), e.quantized_bins, min, max);
    CHECK(min == e.first - middle);
    CHECK(max == e.end - middle);
    // Never beyond the data.
    min = -3;
    max = 5;
    choose_entropy(histogram_of(e.shape, e.bins, false), e.quantized_bins, min, max);
    CHECK(min == -3);
    CHECK(max == 5);
  }
}

TEST_CASE("Jeffreys divergence: the threshold whose cumulative shares are nearest") {
  CHECK(kl_j_threshold(histogram_of(Shape::peak, 1024, true), 4) == 15.5);
  CHECK(kl_j_threshold(histogram_of(Shape::comb, 1024, true), 4) == 505.5);
  CHECK(kl_j_threshold(histogram_of(Shape::decay, 1024, true), 4) == 204.5);
  CHECK(kl_j_threshold(histogram_of(Shape::peak, 1024, true), 8) == 129.5);
  CHECK(kl_j_threshold(histogram_of(Shape::comb, 1024, true), 8) == 512.5);
  CHECK(kl_j_threshold(histogram_of(Shape::decay, 1024, true), 8) == 433.5);
  CHECK(kl_j_threshold(histogram_of(Shape::peak, 64, true), 8) == 32);  // fewer bins than codes
}

TEST_CASE("the entropy observer cuts a far outlier off and keeps uniform data") {
  QuantizationSpec spec;
  spec.observer = ObserverId::PerTensorEntropyObserver;
  std::vector<float> x(20000);
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = (static_cast<double>(i) + 0.5) / 20000 * 2 - 1;  // logistic quantiles
    x[i] = static_cast<float>(0.1 * std::log((1 + u) / (1 - u)));
  }
  x[5] = 50;
  const auto found = observe_tensor(spec, x, {x.size()});
  REQUIRE(found);
  CHECK(found->max[0] < 25);
  CHECK(found->max[0] >= 0.5f);
}
