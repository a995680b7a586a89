// Searches of channels and groups: never worse than the range of the data by their own measure.
#include "observers/search/per_scale_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "observers/observer_spec.h"
#include "observers/registry.h"
#include "observers/sharing.h"
#include "quantize/quantize.h"

using namespace wasmquant;

namespace {

QuantizationSpec per_scale_search_spec_of(ObserverId observer, Dtype dtype, bool symmetric) {
  QuantizationSpec spec = test_observers::spec_of(observer, dtype, symmetric);
  spec.ch_axis = spec.qscheme == QScheme::per_group ? -1 : 0;
  spec.group_size = spec.qscheme == QScheme::per_group ? 32 : 0;
  return spec;
}

std::vector<float> weights_like(std::mt19937& random, size_t count, float width) {
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& v : x) v = width * normal(random) * (random() % 40 == 0 ? 5.0f : 1.0f);
  return x;
}

// Values as files give them back.
std::vector<float> values_of(const QuantizationSpec& spec, const Observation& found, const std::vector<float>& x) {
  std::vector<uint8_t> codes(x.size() * code_bytes_of(spec));
  std::vector<float> y(x.size());
  quantize(found.granularity, spec, found.qparams, kernels::Path::real, x, 0, codes.data());
  dequantize(found.granularity, spec, found.qparams, codes.data(), x.size(), 0, y.data());
  return y;
}

// Sum of w |x - y|^p over elements [begin, end).
double loss(const std::vector<float>& x, const std::vector<float>& y, size_t begin, size_t end, double p,
            const std::vector<float>& weights = {}) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i)
    sum += std::pow(std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])), p) *
           (weights.empty() ? 1.0 : static_cast<double>(weights[i % weights.size()]));
  return sum;
}

Observation per_scale_search_observed(QuantizationSpec spec, ObserverId observer, const std::vector<float>& x,
                                      const std::vector<uint64_t>& shape) {
  spec.observer = observer;
  auto found = observe_tensor(spec, x, shape);
  REQUIRE(found);
  return *found;
}

struct Case {
  Dtype dtype;
  bool symmetric;
};
constexpr Case kIntegers[] = {{Dtype::int4, true},   {Dtype::int4, false}, {Dtype::uint4, false}, {Dtype::int8, true},
                              {Dtype::uint8, false}, {Dtype::int3, true},  {Dtype::int2, true}};

}  // namespace

TEST_CASE("the squared error of every channel and group is that of min-max or less") {
  std::mt19937 random(11);
  constexpr uint64_t kRows = 6, kColumns = 96;
  for (const ObserverId observer : {ObserverId::PerGroupMSEObserver, ObserverId::PerChannelMSEObserver})
    for (const Case& c : {kIntegers[0], kIntegers[1], kIntegers[2], kIntegers[3], kIntegers[4], kIntegers[5],
                          kIntegers[6], Case{Dtype::fp8_e4m3, true}, Case{Dtype::fp4, true}})
      for (const float width : {1e-25f, 0.02f, 3e5f}) {
        CAPTURE(info_of(c.dtype).name);
        CAPTURE(width);
        QuantizationSpec spec = per_scale_search_spec_of(observer, c.dtype, c.symmetric);
        const bool is_group = spec.qscheme == QScheme::per_group;
        const std::vector<float> x = weights_like(random, kRows * kColumns, width);
        const ObserverId min_max = min_max_observer_for(spec.qscheme);
        const Observation found = per_scale_search_observed(spec, observer, x, {kRows, kColumns});
        const std::vector<float> y = values_of(spec, found, x);
        const std::vector<float> plain =
            values_of(spec, per_scale_search_observed(spec, min_max, x, {kRows, kColumns}), x);
        const size_t unit = is_group ? 32 : kColumns;
        bool is_better = false;
        for (size_t at = 0; at < x.size(); at += unit) {
          CHECK(loss(x, y, at, at + unit, 2) <= loss(x, plain, at, at + unit, 2));
          is_better |= loss(x, y, at, at + unit, 2) < 0.9 * loss(x, plain, at, at + unit, 2);
        }
        if (info_of(c.dtype).is_integer && width > 1e-6f) CHECK(is_better);
      }
}

TEST_CASE("no range of the search loses less than the one that is found") {
  std::mt19937 random(17);
  for (const Case& c : {kIntegers[0], kIntegers[1], kIntegers[2], kIntegers[5], kIntegers[6],
                        Case{Dtype::fp8_e4m3, true}, Case{Dtype::fp4, true}})
    for (const uint64_t size : {2, 3, 32})
      for (const bool is_weighted : {false, true}) {
        QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerGroupMSEObserver, c.dtype, c.symmetric);
        const ScaleRule rule(spec);
        for (int trial = 0; trial < 40; ++trial) {
          const std::vector<float> x = weights_like(random, size, 0.1f);
          std::vector<float> weights(size, 1.0f);
          for (float& weight : weights) weight = is_weighted ? 0.01f + static_cast<float>(random() % 100) / 100 : 1.0f;
          PerScaleSearch search(spec, ObserverMethod::per_scale_mse, {});
          const SearchCandidate found = search(x, is_weighted ? weights.data() : nullptr);
          Granularity g;
          g.inner = size;
          const auto loss_of = [&](const QParams& q) {
            std::vector<float> y(size);
            fake_quantize(g, spec, {&q, 1}, x, 0, y.data());
            return loss(x, y, 0, size, 2, weights);
          };
          const float low = *std::min_element(x.begin(), x.end()), high = *std::max_element(x.begin(), x.end());
          double least = loss_of(rule(low, high));
          for (int k = 1; k <= 112; ++k) {
            const float share = static_cast<float>(k) / 100;
            least = std::min(least, loss_of(rule(low * share, high * share)));
          }
          CAPTURE(info_of(c.dtype).name);
          CAPTURE(size);
          CHECK(loss_of(found.qparams) <= least * (1 + 0x1p-14) + 1e-12);
        }
      }
}

TEST_CASE("a fractional zero point is searched with the arithmetic of files") {
  std::mt19937 random(12);
  QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerGroupMSEObserver, Dtype::uint4, false);
  spec.zero_point_type = ZeroPointType::float32;
  for (const float offset : {0.0f, 3.0f, -3.0f}) {
    std::vector<float> x = weights_like(random, 256, 0.1f);
    for (float& v : x) v += offset;
    const std::vector<float> plain =
        values_of(spec, per_scale_search_observed(spec, ObserverId::PerGroupMinMaxObserver, x, {2, 128}), x);
    for (const ObserverId observer : {ObserverId::PerGroupMSEObserver, ObserverId::HQQObserver}) {
      const std::vector<float> y = values_of(spec, per_scale_search_observed(spec, observer, x, {2, 128}), x);
      const double p = observer == ObserverId::HQQObserver ? spec.observer_options.norm : 2;
      CHECK(loss(x, y, 0, x.size(), p) <= loss(x, plain, 0, x.size(), p));
    }
  }
}

TEST_CASE("HQQ is not worse than min-max and MSE by its own loss") {
  std::mt19937 random(13);
  constexpr size_t kCount = 512;
  for (const ObserverId observer : {ObserverId::HQQObserver, ObserverId::PerChannelHQQObserver})
    for (const Case& c : kIntegers)
      for (const ZeroPointType zero : {ZeroPointType::int32, ZeroPointType::float32}) {
        if (zero == ZeroPointType::float32 && (c.symmetric || info_of(c.dtype).is_signed)) continue;
        CAPTURE(info_of(c.dtype).name);
        QuantizationSpec spec = per_scale_search_spec_of(observer, c.dtype, c.symmetric);
        spec.zero_point_type = zero;
        const bool is_group = spec.qscheme == QScheme::per_group;
        const double p = spec.observer_options.norm;
        const std::vector<float> x = weights_like(random, kCount, 0.05f);
        const auto y_of = [&](ObserverId other) {
          return values_of(spec, per_scale_search_observed(spec, other, x, {4, 128}), x);
        };
        const std::vector<float> y = y_of(observer), plain = y_of(min_max_observer_for(spec.qscheme));
        const std::vector<float> mse =
            y_of(is_group ? ObserverId::PerGroupMSEObserver : ObserverId::PerChannelMSEObserver);
        for (size_t at = 0, unit = is_group ? 32 : 128; at < kCount; at += unit) {
          const double own = loss(x, y, at, at + unit, p);
          CHECK(own <= loss(x, plain, at, at + unit, p));
          CHECK(own <= loss(x, mse, at, at + unit, p) * (1 + 0x1p-15));
        }
      }
}

TEST_CASE("weights say which elements matter") {
  std::mt19937 random(14);
  constexpr uint64_t kColumns = 64;
  for (const int64_t axis : {int64_t{0}, int64_t{1}}) {
    QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerChannelMSEObserver, Dtype::int4, true);
    spec.ch_axis = axis;
    const std::vector<float> x = weights_like(random, 4 * kColumns, 1.0f);
    std::vector<float> importance(kColumns);
    for (size_t i = 0; i < kColumns; ++i) importance[i] = i % 8 == 0 ? 1e6f : 1.0f;
    const auto observer = make_observer(spec), plain = make_observer(spec), ones = make_observer(spec);
    REQUIRE(observer->weigh(importance));
    REQUIRE(ones->weigh(std::vector<float>(kColumns, 0.25f)));
    for (Observer* each : {observer.get(), plain.get(), ones.get()}) REQUIRE(observe(*each, 0, x, {4, kColumns}));
    const Observation weighted = *observer->finish(), unweighted = *plain->finish();
    CHECK(observer_tests::same(unweighted, *ones->finish()));
    const double with = loss(x, values_of(spec, weighted, x), 0, x.size(), 2, importance);
    const double without = loss(x, values_of(spec, unweighted, x), 0, x.size(), 2, importance);
    if (axis == 0)
      CHECK(with < without);
    else
      CHECK(with == without);  // each scale has elements of one weight
  }
}

TEST_CASE("weights repeat over the positions of a convolution, and over parts of its rows") {
  std::mt19937 random(15);
  QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerChannelMSEObserver, Dtype::int4, true);
  const std::vector<float> x = weights_like(random, 2 * 4 * 9, 1.0f), importance = {1, 100, 0, 5};
  const auto flat = make_observer(spec), deep = make_observer(spec), parts = make_observer(spec);
  std::vector<float> each;
  for (const float w : importance) each.insert(each.end(), 9, w);
  REQUIRE(flat->weigh(each));
  REQUIRE(deep->weigh(importance));
  REQUIRE(parts->weigh(importance));
  REQUIRE(observe(*flat, 0, x, {2, 36}));
  REQUIRE(observe(*deep, 0, x, {2, 4, 3, 3}));
  REQUIRE(parts->begin(0, {2, 4, 3, 3}));
  for (const size_t at : {size_t{20}, size_t{0}, size_t{50}})
    parts->update(std::span(x).subspan(at, at == 0 ? 20 : at == 20 ? 30 : 22), at);
  CHECK(parts->settling_elements(*granularity_of({2, 4, 3, 3}, spec)) == 36);
  CHECK(observer_tests::same(*flat->finish(), *deep->finish()));
  CHECK(observer_tests::same(*parts->finish(), *deep->finish()));
}

TEST_CASE("weights that do not fit are refused") {
  const QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerChannelMSEObserver, Dtype::int4, true);
  const std::vector<float> x(8, 1.0f), good(4, 1.0f);
  const auto observer = make_observer(spec);
  for (const float bad : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const Status status = observer->weigh(std::vector<float>{1, 1, bad, 1});
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::argument_invalid);
    CHECK(status.error().message.find("channel 2") != std::string::npos);
  }
  REQUIRE(observer->weigh(good));
  CHECK(observe(*observer, 0, x, {4, 2}).error().code == ErrorCode::shape_mismatch);
  CHECK(observe(*observer, 0, x, {8}).error().code == ErrorCode::shape_mismatch);
  REQUIRE(observe(*observer, 0, x, {2, 4}));
  CHECK(observer->weigh(good).error().code == ErrorCode::state_invalid);
  CHECK(make_observer(spec)->merge(*observer).error().code == ErrorCode::state_invalid);
  QuantizationSpec min_max = spec;
  min_max.observer = ObserverId::PerChannelMinMaxObserver;
  CHECK(make_observer(min_max)->weigh(good).error().code == ErrorCode::state_invalid);
}

TEST_CASE("MX: the power of two above, or the one below where that has the smaller error") {
  QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerBlockMXDiffsObserver, Dtype::fp4, true);
  spec.scale_format = ScaleFormat::e8m0;
  std::vector<float> x(32, 1.0f);
  x[5] = 4.1f;  // 2^(3 - 2) is exact for ones and gives 4; 1 has 1 and 4
  Observation found = per_scale_search_observed(spec, spec.observer, x, {1, 32});
  CHECK(found.qparams[0].scale == 2.0f);
  for (float& v : x) v = v == 1.0f ? 0.5f : 3.0f;  // 1: 0.5 and 3 exact; 0.5 as well: the larger stays
  found = per_scale_search_observed(spec, spec.observer, x, {1, 32});
  CHECK(found.qparams[0].scale == 1.0f);
  for (float& v : x) v = v == 0.5f ? 0.25f : 3.0f;  // 0.25 needs the finer one
  found = per_scale_search_observed(spec, spec.observer, x, {1, 32});
  CHECK(found.qparams[0].scale == 0.5f);
}

TEST_CASE("NVFP4: block scales below the tensor's scale are searched, too") {
  std::mt19937 random(16);
  QuantizationSpec spec = per_scale_search_spec_of(ObserverId::PerGroupMSEObserver, Dtype::fp4, true);
  spec.group_size = 16;
  spec.scale_format = ScaleFormat::e4m3;
  const std::vector<float> x = weights_like(random, 512, 0.05f);
  const std::vector<float> y = values_of(spec, per_scale_search_observed(spec, spec.observer, x, {4, 128}), x);
  const std::vector<float> plain =
      values_of(spec, per_scale_search_observed(spec, ObserverId::PerGroupMinMaxObserver, x, {4, 128}), x);
  CHECK(loss(x, y, 0, x.size(), 2) < loss(x, plain, 0, x.size(), 2));
}
