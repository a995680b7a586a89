// The grids of the dialects against numbers worked out by hand, and that they are the same in pieces.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "quantize/quantize.h"
#include "tools/aihwkit/aihwkit_grid.h"
#include "tools/brevitas/brevitas_grid.h"

using namespace wasmquant;

namespace {

QuantizationSpec grid_rule_spec_of(Dtype dtype, bool symmetric, const RoundingGrid& grid) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.grid = grid;
  return spec;
}

RoundingGrid weights(bool power_of_two, BrevitasVersion version = BrevitasVersion::v0_12_1) {
  return brevitas_grid(true, power_of_two, version);
}

std::vector<float> values_of(const QuantizationSpec& spec, const QParams& q, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  Granularity g;
  g.inner = x.size();
  fake_quantize(g, spec, {&q, 1}, x, 0, y.data());
  return y;
}

std::vector<int> codes_of(const QuantizationSpec& spec, const QParams& q, const std::vector<float>& x) {
  std::vector<uint8_t> codes(x.size());
  Granularity g;
  g.inner = x.size();
  quantize(g, spec, {&q, 1}, kernels::Path::fake, x, 0, codes.data());
  std::vector<int> numbers;
  for (const uint8_t code : codes) numbers.push_back(info_of(spec.dtype).is_signed ? static_cast<int8_t>(code) : code);
  return numbers;
}

}  // namespace

TEST_CASE("\"8 bits, symmetric\" has four divisors") {
  CHECK(qparams_of(-2.0f, 1.0f, grid_rule_spec_of(Dtype::int8, true, {})).scale == 2.0f / 127.5f);
  CHECK(qparams_of(-2.0f, 1.0f, grid_rule_spec_of(Dtype::int8, true, aihwkit_grid())).scale == 2.0f / 127.0f);
  CHECK(qparams_of(-2.0f, 1.0f, grid_rule_spec_of(Dtype::int8, true, weights(false))).scale == 2.0f / 127.0f);
  const RoundingGrid activations = brevitas_grid(false, false, BrevitasVersion::v0_12_1);
  CHECK(qparams_of(-2.0f, 1.0f, grid_rule_spec_of(Dtype::int8, true, activations)).scale == 2.0f / 128.0f);
  CHECK(quant_min_of(grid_rule_spec_of(Dtype::int8, true, weights(false))) == -127);
  CHECK(quant_max_of(grid_rule_spec_of(Dtype::uint8, false, weights(false))) == 254);
  CHECK(quant_min_of(grid_rule_spec_of(Dtype::int8, true, activations)) == -128);
}

TEST_CASE("aihwkit: data without negative values makes symmetric codes unsigned, for all channels or none") {
  const QuantizationSpec spec = grid_rule_spec_of(Dtype::int8, true, aihwkit_grid());
  const float positive[] = {0.5f, 0.0f}, mixed[] = {0.5f, -0.25f}, max[] = {1.0f, 2.0f};
  CHECK(spec_for_data(spec, positive).dtype == Dtype::uint8);
  CHECK(spec_for_data(spec, mixed).dtype == Dtype::int8);
  QParams q[2];
  qparams_of_ranges(positive, max, spec, q);
  CHECK(q[1].scale == 2.0f / 255.0f);
  qparams_of_ranges(mixed, max, spec, q);
  CHECK(q[0].scale == 1.0f / 127.0f);
  // Other specs stay as they are.
  CHECK(spec_for_data(grid_rule_spec_of(Dtype::int8, true, {}), positive).dtype == Dtype::int8);
}

TEST_CASE("aihwkit: scale floors, and a zero point computed before the floor") {
  const QuantizationSpec symmetric = grid_rule_spec_of(Dtype::int4, true, aihwkit_grid());
  CHECK(qparams_of(-1e-12f, 1e-12f, symmetric).scale == 1e-8f);
  const QParams q = qparams_of(-2e-8f, 2e-8f, grid_rule_spec_of(Dtype::uint8, false, aihwkit_grid()));
  CHECK(q.scale == 1e-8f);
  CHECK(q.zero_point == 128.0f);  // 127.5 of the steps that there would be
}

TEST_CASE("the zero point is added after or before rounding, and x is divided by the scale") {
  // Scale 1: x + 3 with a tie. Rounding first makes 0.5 zero; rounding last takes 3.5 to 4.
  const QParams q{1.0f, 3.0f};
  CHECK(codes_of(grid_rule_spec_of(Dtype::uint4, false, aihwkit_grid()), q, {0.5f, 1.5f, -0.5f}) ==
        std::vector<int>{3, 5, 3});
  CHECK(codes_of(grid_rule_spec_of(Dtype::uint4, false, weights(false)), q, {0.5f, 1.5f, -0.5f}) ==
        std::vector<int>{4, 4, 2});
  CHECK(values_of(grid_rule_spec_of(Dtype::uint4, false, weights(false)), q, {0.5f, 20.0f}) ==
        std::vector<float>{1.0f, 11.0f});
  // 0.3 / 0.1 rounds to 3, so 0.35 / 0.1 = 3.5 goes to 4; times the reciprocal it is 3.5 too, but 0.55 / 0.1 is not.
  const float scale = 0.1f, x = 0.15f;
  const auto divided = static_cast<int>(std::nearbyint(x / scale));
  CHECK(codes_of(grid_rule_spec_of(Dtype::int8, true, aihwkit_grid()), {scale, 0}, {x}) == std::vector<int>{divided});
}

TEST_CASE("Brevitas: all-negative asymmetric weights saturate, as upstream") {
  const QuantizationSpec spec = grid_rule_spec_of(Dtype::uint4, false, weights(false));
  const QParams q = qparams_of(-1.95f, -1.01f, spec);
  CHECK(q.scale == doctest::Approx(0.94f / 14));
  CHECK(q.zero_point == 14.0f);
  const std::vector<float> y = values_of(spec, q, {-1.95f, -1.01f});
  CHECK(y[0] == y[1]);
}

TEST_CASE("powers of two: the threshold is rounded up by a logarithm in float32") {
  const QuantizationSpec spec = grid_rule_spec_of(Dtype::int4, true, weights(true));
  CHECK(qparams_of(-1.0f, 1.0f, spec).scale == 1.0f / 8);
  CHECK(qparams_of(-1.1f, 1.0f, spec).scale == 2.0f / 8);
  const float beside = std::nextafter(16.0f, 17.0f);  // log2 is 4 + 1.7e-7, of which float32 has 4
  CHECK(qparams_of(-beside, 1.0f, spec).scale == 16.0f / 8);
  CHECK(qparams_of(-std::nextafter(1.0f, 2.0f), 1.0f, spec).scale == 2.0f / 8);
  CHECK(qparams_of(0.0f, 0.0f, spec).scale == 0x1p-33f / 8);
  CHECK(qparams_of(0.0f, 0.0f, grid_rule_spec_of(Dtype::int4, true, weights(true, BrevitasVersion::v0_10_3))).scale ==
        1e-10f / 8);
  const float largest = std::numeric_limits<float>::max();
  CHECK(std::isfinite(qparams_of(-largest, largest, spec).scale));
}

TEST_CASE(
    "a grid divided into pieces gives the whole result, along rows, channels of the last axis and in wide codes") {
  std::vector<float> x;
  for (int i = 0; i < 5 * 300; ++i) x.push_back(static_cast<float>((i * 7919) % 1001 - 500) / 173.0f);
  for (const RoundingGrid& grid : {aihwkit_grid(), weights(false)})
    for (const Dtype dtype : {Dtype::int4, Dtype::int8, Dtype::int16, Dtype::int32})
      for (const int64_t axis : {0, 1}) {
        QuantizationSpec spec = grid_rule_spec_of(dtype, true, grid);
        spec.qscheme = QScheme::per_channel;
        spec.ch_axis = axis;
        const Result<Granularity> g = granularity_of({5, 300}, spec);
        REQUIRE(g);
        std::vector<QParams> q(static_cast<size_t>(g->scale_count()));
        for (size_t i = 0; i < q.size(); ++i) q[i] = {0.125f + static_cast<float>(i % 7) / 300, 0};
        std::vector<float> whole(x.size()), pieces(x.size());
        fake_quantize(*g, spec, q, x, 0, whole.data());
        for (size_t at = 0; at < x.size(); at += 211) {
          const size_t count = std::min<size_t>(211, x.size() - at);
          fake_quantize(*g, spec, q, {x.data() + at, count}, at, pieces.data() + at);
        }
        CHECK(whole == pieces);
        std::vector<float> in_place = x;
        fake_quantize(*g, spec, q, in_place, 0, in_place.data());
        CHECK(whole == in_place);
        for (size_t i = 0; i < x.size(); ++i) {
          const float scale = q[axis == 0 ? i / 300 : i % 300].scale;
          const auto low = static_cast<double>(quant_min_of(spec)), high = static_cast<double>(quant_max_of(spec));
          const double code = std::min(std::max<double>(std::nearbyint(x[i] / scale), low), high);
          REQUIRE(whole[i] == static_cast<float>(code) * scale);
        }
      }
}

TEST_CASE("the last group may be short if the grid allows it") {
  QuantizationSpec spec = grid_rule_spec_of(Dtype::int8, true, brevitas_mx_integer_grid());
  spec.qscheme = QScheme::per_group;
  spec.group_size = 32;
  spec.ch_axis = -1;
  const Result<Granularity> g = granularity_of({2, 70}, spec);
  REQUIRE(g);
  CHECK(g->scale_count() == 6);
  CHECK(qparams_of(-3.0f, 1.0f, spec).scale == 2.0f / 128);
}
