// Range observers: a tensor in tiles, in any order, over several observers, gives the ranges of the whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "observers/registry.h"
#include "random_values.h"

using namespace wasmquant;
using BatchShape = std::vector<uint64_t>;

namespace {

std::vector<QuantizationSpec> specs() {
  std::vector<QuantizationSpec> all;
  for (const auto& [qscheme, ch_axis, group_size] : {std::tuple{QScheme::per_tensor, 0, 0},
                                                     {QScheme::per_channel, 0, 0},
                                                     {QScheme::per_channel, 1, 0},
                                                     {QScheme::per_channel, -1, 0},
                                                     {QScheme::per_group, -1, 4},
                                                     {QScheme::per_group, 1, 3},
                                                     {QScheme::per_group, 0, -1}}) {
    QuantizationSpec spec;
    spec.symmetric = false;
    spec.qscheme = qscheme;
    spec.ch_axis = ch_axis;
    spec.group_size = group_size;
    spec.observer = min_max_observer_for(qscheme);
    all.push_back(spec);
  }
  return all;
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

bool same_range(const RangeObserver& a, const RangeObserver& b) {
  return copy_of(a.min()) == copy_of(b.min()) && copy_of(a.max()) == copy_of(b.max());
}

}  // namespace

TEST_CASE("ranges cover exactly the elements of each scale") {
  const BatchShape shape = {2, 6, 8};
  const std::vector<float> x = normal_values(96, 1);
  for (const QuantizationSpec& spec : specs()) {
    const auto g = granularity_of(shape, spec);
    REQUIRE(static_cast<bool>(g));
    RangeObserver observer(*g, spec);
    CHECK(observer.update(x, 0) == -1);
    std::vector<float> min(static_cast<size_t>(g->scale_count()), std::numeric_limits<float>::infinity()), max(min);
    for (float& v : max) v = -v;
    for_each_run(*g, 0, x.size(), [&](const Run& run) {
      for (uint64_t i = 0; i < run.count; ++i) {
        const auto s = static_cast<size_t>(run.scale + i * run.scale_stride);
        const float v = x[static_cast<size_t>(run.begin + i)];
        min[s] = std::min(min[s], v);
        max[s] = std::max(max[s], v);
      }
    });
    CHECK(copy_of(observer.min()) == min);
    CHECK(copy_of(observer.max()) == max);
    const std::vector<QParams> qparams = observer.finish();
    REQUIRE(qparams.size() == g->scale_count());
    for (size_t i = 0; i < qparams.size(); ++i) CHECK(qparams[i].scale == qparams_of(min[i], max[i], spec).scale);
  }
}

TEST_CASE("any split, in any order, over any number of observers, gives the whole result") {
  const BatchShape shape = {2, 6, 8};
  const std::vector<float> x = normal_values(96, 2);
  std::mt19937 random(3);
  for (const QuantizationSpec& spec : specs()) {
    const auto g = granularity_of(shape, spec);
    REQUIRE(static_cast<bool>(g));
    RangeObserver whole(*g, spec);
    whole.update(x, 0);
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<size_t> cuts = {0, x.size()};
      for (int i = 0; i < 5; ++i) cuts.push_back(random() % x.size());
      std::sort(cuts.begin(), cuts.end());
      std::vector<size_t> order(cuts.size() - 1);
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), random);
      std::vector<RangeObserver> observers(3, RangeObserver(*g, spec));
      for (const size_t tile : order)
        observers[random() % 3].update({x.data() + cuts[tile], cuts[tile + 1] - cuts[tile]}, cuts[tile]);
      RangeObserver merged(*g, spec);
      for (const RangeObserver& part : observers) merged.merge(part);
      CHECK(same_range(merged, whole));
    }
  }
}

TEST_CASE("the first element that is not finite is named and left out") {
  for (const QuantizationSpec& spec : specs()) {
    const auto g = granularity_of({2, 6, 8}, spec);
    REQUIRE(static_cast<bool>(g));
    std::vector<float> x = normal_values(96, 4);
    for (const size_t bad : {0u, 13u, 95u}) {
      std::vector<float> broken = x;
      broken[bad] = std::numeric_limits<float>::quiet_NaN();
      broken[95] = std::numeric_limits<float>::infinity();
      RangeObserver observer(*g, spec);
      CHECK(observer.update(broken, 0) == static_cast<int64_t>(bad));
      for (const float v : observer.min()) CHECK(v < 10.0f);
      for (const float v : observer.max()) CHECK(v > -10.0f);
      CHECK(RangeObserver(*g, spec).update({broken.data() + 90, 6}, 90) == 95);
    }
  }
}

TEST_CASE("before any data, and after reset") {
  QuantizationSpec spec;
  const auto g = granularity_of({4}, spec);
  RangeObserver observer(*g, spec);
  CHECK(observer.finish().front().scale == 1.0f);
  const std::vector<float> x = {1.0f, 2.0f, 3.0f, 4.0f};
  observer.update(x, 0);
  CHECK(observer.finish().front().scale == 4.0f / 127.5f);
  observer.reset();
  CHECK(observer.finish().front().scale == 1.0f);
}

TEST_CASE("registry: names with and without their ending") {
  CHECK(observer_named("PerTensorMinMaxObserver") == ObserverId::PerTensorMinMaxObserver);
  CHECK(observer_named("PerGroupMinMax") == ObserverId::PerGroupMinMaxObserver);
  CHECK_FALSE(observer_named("PerGroupMinMaxObserverObserver").has_value());
  CHECK_FALSE(observer_named("Observer").has_value());
  CHECK_FALSE(observer_named("").has_value());
  for (const ObserverInfo& row : kObservers) {
    CHECK(observer_named(row.name) == row.id);
    CHECK(&info_of(row.id) == &row);
  }
  CHECK(min_max_observer_for(QScheme::per_channel) == ObserverId::PerChannelMinMaxObserver);
  CHECK(min_max_observer_for(QScheme::per_block) == ObserverId::PerBlock2DMinMaxObserver);
}
