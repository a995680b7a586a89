// Power-of-two scales. Values: spec 4.4 and 4.5, which are those of Quark's unit tests.
#include "observers/pow2_observer.h"

#include <doctest/doctest.h>

#include <random>

#include "observers/observer_spec.h"
#include "observers/registry.h"

using namespace wasmquant;
using test_observers::spec_of;

namespace {

struct Expected {
  Dtype dtype;
  bool symmetric;
  float scale, zero_point;
};

std::vector<QParams> after(const QuantizationSpec& spec, Votes votes, const std::vector<std::vector<float>>& batches,
                           const std::vector<uint64_t>& shape) {
  const auto observer = make_observer(spec, {.votes = votes});
  for (uint32_t pass = 1; pass <= observer->passes(); ++pass) {
    if (pass == 2) CHECK(static_cast<bool>(observer->next_pass()));
    for (size_t b = 0; b < batches.size(); ++b) CHECK(static_cast<bool>(observe(*observer, b, batches[b], shape)));
  }
  const auto found = observer->finish();
  REQUIRE(static_cast<bool>(found));
  return found->qparams;
}

void check(const QParams& found, float scale, float zero_point) {
  CHECK(found.scale == scale);
  CHECK(found.zero_point == zero_point);
}

}  // namespace

TEST_CASE("pow2 min-max: the power next to the scale of the range") {
  for (const Expected& e : {Expected{Dtype::int8, true, 0x1p-5f, 0}, Expected{Dtype::uint8, true, 0x1p-5f, 128},
                            Expected{Dtype::int8, false, 0x1p-6f, -64}, Expected{Dtype::uint8, false, 0x1p-6f, 63}}) {
    const QuantizationSpec spec = spec_of(ObserverId::PerTensorPowOf2MinMaxObserver, e.dtype, e.symmetric);
    check(after(spec, Votes::every_batch, {{-1, 0, 1, 2, 3}}, {5})[0], e.scale, e.zero_point);
  }
}

TEST_CASE("pow2 min-mse: of five powers the one with the least error over the last batch") {
  const std::vector<std::vector<float>> batches = {{-4, -2.1f, .1f, 2, 3.9f, 7.9f, 8.1f},
                                                   {-4.1f, -1.9f, -.1f, 2.1f, 4.1f, 7.99f, 7.85f}};
  for (const Expected& e : {Expected{Dtype::int8, true, 0x1p-3f, 0}, Expected{Dtype::uint8, true, 0x1p-3f, 128},
                            Expected{Dtype::int8, false, 0x1p-3f, -42}, Expected{Dtype::uint8, false, 0x1p-3f, 85}}) {
    const QuantizationSpec spec = spec_of(ObserverId::PerTensorPowOf2MinMSEObserver, e.dtype, e.symmetric);
    check(after(spec, Votes::last_batch, batches, {7})[0], e.scale, e.zero_point);
  }
}

TEST_CASE("the pair found most often wins, ties go to the first") {
  const QuantizationSpec spec = spec_of(ObserverId::PerTensorPowOf2MinMaxObserver, Dtype::int8, true);
  const auto scale = [&](Votes votes, const std::vector<std::vector<float>>& batches) {
    return after(spec, votes, batches, {1})[0].scale;
  };
  CHECK(scale(Votes::every_batch, {{1}, {1}, {4}}) == 0x1p-7f);
  CHECK(scale(Votes::every_batch, {{1}, {4}}) == 0x1p-7f);
  CHECK(scale(Votes::every_batch, {{1}, {4}, {2}}) == 0x1p-5f);  // ranges run: 1, 4, 4
  CHECK(scale(Votes::last_batch, {{1}, {1}, {4}}) == 0x1p-5f);
}

TEST_CASE("per channel: separate scales, one search step for all, 128 only where all are 127") {
  const std::vector<float> x = {-1, 1, 0.5f, 0, 0, 0};
  const QuantizationSpec min_max = spec_of(ObserverId::PerChannelPowOf2MinMaxObserver, Dtype::uint8, true);
  const std::vector<QParams> with_zeros = after(min_max, Votes::every_batch, {x}, {2, 3});
  check(with_zeros[0], 0x1p-7f, 127);
  check(with_zeros[1], 1, 0);
  const std::vector<QParams> both = after(min_max, Votes::every_batch, {{-1, 1, 0.5f, 2, -4, 0}}, {2, 3});
  check(both[0], 0x1p-7f, 128);
  check(both[1], 0x1p-5f, 128);

  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> weights(4 * 64);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = normal(random) * static_cast<float>(1 + i / 64);
  const auto narrow = spec_of(ObserverId::PerChannelPowOf2MinMaxObserver, Dtype::int4, true);
  const auto best = spec_of(ObserverId::PerChannelPowOf2MinMSEObserver, Dtype::int4, true);
  const std::vector<QParams> a = after(narrow, Votes::every_batch, {weights}, {4, 64});
  const std::vector<QParams> b = after(best, Votes::every_batch, {weights}, {4, 64});
  for (size_t i = 1; i < 4; ++i) CHECK(b[i].scale / a[i].scale == b[0].scale / a[0].scale);
}

TEST_CASE("the nearest power is by logarithm: the square root of 2 divides") {
  QuantizationSpec spec = spec_of(ObserverId::PerTensorPowOf2MinMaxObserver, Dtype::uint8, false);
  CHECK(pow2_qparams_of(0, 255.0f * 1.4142f, spec).scale == 1);
  CHECK(pow2_qparams_of(0, 255.0f * 1.4143f, spec).scale == 2);
  CHECK(pow2_qparams_of(0, 255.0f * 0.7072f, spec).scale == 1);
  CHECK(pow2_qparams_of(0, 255.0f * 0.7071f, spec).scale == 0.5f);
}

TEST_CASE("exact sums do not depend on order") {
  ExactSum forward, backward;
  const std::vector<double> terms = {0x1p-60, 3.75, 0x1p30, 0.1, 0x1p-62, 0.9999999, 12345.678};
  for (size_t i = 0; i < terms.size(); ++i) {
    forward.add(terms[i]);
    backward.add(terms[terms.size() - 1 - i]);
  }
  CHECK_FALSE(forward < backward);
  CHECK_FALSE(backward < forward);
  backward.add(0x1p-62);
  CHECK(forward < backward);

  const std::vector<float> x = {1.25f, -3.0f, 0.0f, 100.0f, 3.0f, 7.0f, 2.0f};
  const std::vector<float> y = {1.0f, -3.5f, 0.0f, 101.0f, 3.0f, 7.0f, 2.0f};
  ExactSum sum;
  add_squared_error(x, y.data(), 2, 8, sum);
  CHECK(sum.whole == 5);
  CHECK(sum.fraction == uint64_t{1} << 60);
}
