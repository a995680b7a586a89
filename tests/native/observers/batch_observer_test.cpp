// State over batches: what accumulates, what is replaced, and what an error leaves behind.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "observers/batch_observer.h"

using namespace wasmquant;

namespace {

QuantizationSpec spec_of(QScheme qscheme, bool is_dynamic) {
  QuantizationSpec spec;
  spec.qscheme = qscheme;
  spec.ch_axis = -1;
  spec.group_size = 2;
  spec.is_dynamic = is_dynamic;
  spec.observer = *min_max_observer_for(qscheme);
  return spec;
}

const std::vector<float> kFirst = {-4.0f, 1.0f, 2.0f, 3.0f}, kSecond = {1.0f, -1.0f, 8.0f, 1.0f};

// Ranges after [1, 4] batches of kFirst, then kSecond.
std::vector<float> max_after_both(const QuantizationSpec& spec) {
  BatchObserver observer(spec);
  CHECK(static_cast<bool>(observer.observe(kFirst, {1, 4})));
  CHECK(static_cast<bool>(observer.observe(kSecond, {1, 4})));
  REQUIRE(observer.range() != nullptr);
  return {observer.range()->max().begin(), observer.range()->max().end()};
}

}  // namespace

TEST_CASE("static per_tensor and per_channel accumulate; dynamic and per_group keep the last tensor") {
  CHECK(max_after_both(spec_of(QScheme::per_tensor, false)) == std::vector<float>{8});
  CHECK(max_after_both(spec_of(QScheme::per_channel, false)) == std::vector<float>{1, 1, 8, 3});
  CHECK(max_after_both(spec_of(QScheme::per_channel, true)) == std::vector<float>{1, -1, 8, 1});
  CHECK(max_after_both(spec_of(QScheme::per_group, false)) == std::vector<float>{1, 8});
  CHECK(max_after_both(spec_of(QScheme::per_tensor, true)) == std::vector<float>{8});
}

TEST_CASE("per_tensor accumulates over any shapes; per_channel starts anew with another number of channels") {
  BatchObserver tensor(spec_of(QScheme::per_tensor, false)), channel(spec_of(QScheme::per_channel, false));
  for (BatchObserver* observer : {&tensor, &channel}) {
    CHECK(static_cast<bool>(observer->observe(kFirst, {4})));
    CHECK(static_cast<bool>(observer->observe(kSecond, {2, 2})));
  }
  CHECK(tensor.range()->min()[0] == -4.0f);
  CHECK(channel.range()->min().size() == 2);
  CHECK(channel.range()->min()[1] == -1.0f);
}

TEST_CASE("merge adds another observer's ranges, and refuses other scale shapes") {
  const QuantizationSpec spec = spec_of(QScheme::per_channel, false);
  BatchObserver a(spec), b(spec), other(spec);
  CHECK(static_cast<bool>(a.merge(b)));
  CHECK(a.range() == nullptr);
  CHECK(static_cast<bool>(b.observe(kSecond, {4})));
  CHECK(static_cast<bool>(a.merge(b)));
  CHECK(a.range()->max()[2] == 8.0f);
  CHECK(static_cast<bool>(other.observe(kFirst, {4})));
  CHECK(static_cast<bool>(a.merge(other)));
  CHECK(a.range()->min()[0] == -4.0f);
  CHECK(a.range()->max()[2] == 8.0f);
  other.reset();
  CHECK(static_cast<bool>(other.observe(kFirst, {2, 2})));
  const Status status = a.merge(other);
  REQUIRE_FALSE(static_cast<bool>(status));
  CHECK(status.error().code == ErrorCode::shape_mismatch);
}

TEST_CASE("errors leave the state as it was; before the first tensor the scale is 1") {
  BatchObserver observer(spec_of(QScheme::per_group, false));
  REQUIRE(observer.finish().size() == 1);
  CHECK(observer.finish()[0].scale == 1.0f);
  CHECK(static_cast<bool>(observer.observe(kFirst, {4})));
  const Status odd = observer.observe({kFirst.data(), 3}, {3});
  REQUIRE_FALSE(static_cast<bool>(odd));
  CHECK(odd.error().code == ErrorCode::group_size_invalid);
  const Status short_data = observer.observe({kFirst.data(), 3}, {4});
  REQUIRE_FALSE(static_cast<bool>(short_data));
  CHECK(short_data.error().code == ErrorCode::shape_mismatch);
  std::vector<float> broken = kSecond;
  broken[2] = std::numeric_limits<float>::infinity();
  const Status infinite = observer.observe(broken, {4});
  REQUIRE_FALSE(static_cast<bool>(infinite));
  CHECK(infinite.error().code == ErrorCode::value_not_finite);
  CHECK(infinite.error().message.find("element 2") != std::string::npos);
  CHECK(observer.range()->max()[1] == 3.0f);
  observer.reset();
  CHECK(observer.range() == nullptr);
}
