// What all observers have in common: batches, passes, merging, errors.
#include "observers/observer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "observers/registry.h"
#include "observers/sharing.h"

using namespace wasmquant;
using observer_tests::same;
using observer_tests::specs_of_all_observers;

namespace {

QuantizationSpec observer_spec_of(QScheme qscheme, bool is_dynamic) {
  QuantizationSpec spec;
  spec.qscheme = qscheme;
  spec.ch_axis = -1;
  spec.group_size = 2;
  spec.is_dynamic = is_dynamic;
  spec.observer = min_max_observer_for(qscheme);
  return spec;
}

const std::vector<float> kFirst = {-4.0f, 1.0f, 2.0f, 3.0f}, kSecond = {1.0f, -1.0f, 8.0f, 1.0f};

Observation finished(const Observer& observer) {
  auto found = observer.finish();
  REQUIRE(static_cast<bool>(found));
  return *found;
}

// Ranges after [1, 4] batches of kFirst, then kSecond.
std::vector<float> max_after_both(const QuantizationSpec& spec) {
  const auto observer = make_observer(spec);
  CHECK(static_cast<bool>(observe(*observer, 0, kFirst, {1, 4})));
  CHECK(static_cast<bool>(observe(*observer, 1, kSecond, {1, 4})));
  return finished(*observer).max;
}

ErrorCode code_of(const Status& status) {
  REQUIRE_FALSE(static_cast<bool>(status));
  return status.error().code;
}

}  // namespace

TEST_CASE("static per_tensor and per_channel accumulate; dynamic and per_group keep the last batch") {
  CHECK(max_after_both(observer_spec_of(QScheme::per_tensor, false)) == std::vector<float>{8});
  CHECK(max_after_both(observer_spec_of(QScheme::per_channel, false)) == std::vector<float>{1, 1, 8, 3});
  CHECK(max_after_both(observer_spec_of(QScheme::per_channel, true)) == std::vector<float>{1, -1, 8, 1});
  CHECK(max_after_both(observer_spec_of(QScheme::per_group, false)) == std::vector<float>{1, 8});
  CHECK(max_after_both(observer_spec_of(QScheme::per_tensor, true)) == std::vector<float>{8});
}

TEST_CASE("per_tensor accumulates over any shapes; per_channel starts over when the number of channels changes") {
  const auto tensor = make_observer(observer_spec_of(QScheme::per_tensor, false));
  const auto channel = make_observer(observer_spec_of(QScheme::per_channel, false));
  for (Observer* observer : {tensor.get(), channel.get()}) {
    CHECK(static_cast<bool>(observe(*observer, 0, kFirst, {4})));
    CHECK(static_cast<bool>(observe(*observer, 1, kSecond, {2, 2})));
  }
  CHECK(finished(*tensor).min[0] == -4.0f);
  CHECK(finished(*channel).min == std::vector<float>{1, -1});
}

TEST_CASE("merge adds another observer's ranges, and refuses other scale shapes and specs") {
  const QuantizationSpec spec = observer_spec_of(QScheme::per_channel, false);
  const auto a = make_observer(spec), b = make_observer(spec), other = make_observer(spec);
  CHECK(static_cast<bool>(a->merge(*b)));
  CHECK(finished(*a).qparams[0].scale == 1.0f);
  CHECK(static_cast<bool>(observe(*b, 0, kSecond, {4})));
  CHECK(static_cast<bool>(a->merge(*b)));
  CHECK(finished(*a).max[2] == 8.0f);
  CHECK(static_cast<bool>(observe(*other, 0, kFirst, {4})));
  CHECK(static_cast<bool>(a->merge(*other)));
  CHECK(finished(*a).min[0] == -4.0f);
  CHECK(finished(*a).max[2] == 8.0f);
  other->reset();
  CHECK(static_cast<bool>(observe(*other, 0, kFirst, {2, 2})));
  CHECK(code_of(a->merge(*other)) == ErrorCode::shape_mismatch);
  CHECK(code_of(a->merge(*make_observer(observer_spec_of(QScheme::per_tensor, false)))) == ErrorCode::state_invalid);
}

TEST_CASE("errors leave the state as it was; before the first batch the scale is 1") {
  const auto observer = make_observer(observer_spec_of(QScheme::per_group, false));
  REQUIRE(finished(*observer).qparams.size() == 1);
  CHECK(finished(*observer).qparams[0].scale == 1.0f);
  CHECK(static_cast<bool>(observe(*observer, 0, kFirst, {4})));
  CHECK(code_of(observe(*observer, 1, {kFirst.data(), 3}, {3})) == ErrorCode::group_size_invalid);
  CHECK(code_of(observe(*observer, 1, {kFirst.data(), 3}, {4})) == ErrorCode::shape_mismatch);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> broken = kSecond;
    broken[2] = bad;
    const Status status = observe(*observer, 1, broken, {4});
    CHECK(code_of(status) == ErrorCode::value_not_finite);
    CHECK(status.error().message.find("element 2") != std::string::npos);
  }
  CHECK(finished(*observer).max[1] == 3.0f);
  observer->reset();
  CHECK(finished(*observer).qparams[0].scale == 1.0f);
}

TEST_CASE("passes: the observer asks for a second one, which gets the batches of the first") {
  for (const QuantizationSpec& spec : specs_of_all_observers()) {
    CAPTURE(info_of(spec.observer).name);
    const auto observer = make_observer(spec);
    CHECK(static_cast<bool>(observe(*observer, 3, kFirst, {2, 2})));
    if (observer->passes() == 2) {
      const auto unfinished = observer->finish();
      REQUIRE_FALSE(static_cast<bool>(unfinished));
      CHECK(unfinished.error().code == ErrorCode::state_invalid);
      const auto earlier = make_observer(spec);
      CHECK(static_cast<bool>(observer->next_pass()));
      CHECK(code_of(observer->merge(*earlier)) == ErrorCode::state_invalid);
      CHECK(code_of(observer->begin(4, {2, 2})) == ErrorCode::state_invalid);
      CHECK_FALSE(static_cast<bool>(observer->finish()));
      CHECK(static_cast<bool>(observe(*observer, 3, kFirst, {2, 2})));
    }
    CHECK(code_of(observer->next_pass()) == ErrorCode::state_invalid);
    CHECK(static_cast<bool>(observer->finish()));
    // After reset, as new.
    observer->reset();
    CHECK(observer->pass() == 1);
    CHECK(finished(*observer).qparams[0].scale == 1.0f);
  }
}

TEST_CASE("a batch keeps its scales in the second pass") {
  QuantizationSpec spec;
  spec.observer = ObserverId::PerChannelPowOf2MinMSEObserver;
  spec.qscheme = QScheme::per_channel;
  const auto observer = make_observer(spec);
  CHECK(static_cast<bool>(observe(*observer, 0, kFirst, {2, 2})));
  CHECK(static_cast<bool>(observer->next_pass()));
  CHECK(code_of(observer->begin(0, {4, 1})) == ErrorCode::shape_mismatch);
  CHECK(static_cast<bool>(observe(*observer, 0, kFirst, {2, 2})));
}

TEST_CASE("update names the first element that is not finite and leaves it out") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> clean = {0.5f, -0.25f, 1.0f, 0.75f}, broken = {0.5f, -0.25f, nan, 1.0f, -inf, 0.75f};
  for (QuantizationSpec spec : specs_of_all_observers()) {
    if (spec.qscheme != QScheme::per_tensor) continue;
    CAPTURE(info_of(spec.observer).name);
    const auto observer = make_observer(spec);
    for (uint32_t pass = 1; pass <= observer->passes(); ++pass) {
      if (pass == 2) CHECK(static_cast<bool>(observer->next_pass()));
      CHECK(static_cast<bool>(observer->begin(0, {6})));
      CHECK(observer->update({broken.data(), 2}, 0) == -1);
      CHECK(observer->update({broken.data() + 2, 4}, 2) == (pass == 1 ? 2 : -1));
    }
    const auto expected = observe_tensor(spec, clean, {4});
    REQUIRE(static_cast<bool>(expected));
    CHECK(same(finished(*observer), *expected));
  }
}

TEST_CASE("empty, one element, constant and zero tensors give usable scales") {
  const float large = std::numeric_limits<float>::max(), small = std::numeric_limits<float>::denorm_min();
  for (const QuantizationSpec& spec : specs_of_all_observers()) {
    CAPTURE(info_of(spec.observer).name);
    const uint64_t rows = 2;
    for (const float value : {0.0f, -0.0f, 3.0f, -3.0f, large, -large, small}) {
      CAPTURE(value);
      for (const uint64_t columns : {uint64_t{0}, uint64_t{1}, uint64_t{5}}) {
        if (columns == 0 && (spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_block)) continue;
        QuantizationSpec fitting = spec;
        fitting.group_size = -1;
        const std::vector<float> x(rows * columns, value);
        const auto found = observe_tensor(fitting, x, {rows, columns});
        REQUIRE(static_cast<bool>(found));
        for (const QParams& q : found->qparams) {
          CHECK(std::isfinite(q.scale));
          CHECK(q.scale > 0);
          CHECK(q.zero_point >= std::min<int64_t>(info_of(spec.dtype).quant_min, 0));
          CHECK(q.zero_point <= info_of(spec.dtype).quant_max);
        }
      }
    }
  }
}
