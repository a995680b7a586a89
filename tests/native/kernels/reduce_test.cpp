#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

bool reduce_same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

void check_reductions(std::span<const float> x) {
  const Extent extent = reduce_extent(x), expected = reference::reduce_extent(x);
  REQUIRE(reduce_same_bits(extent.min, expected.min));
  REQUIRE(reduce_same_bits(extent.max, expected.max));
  REQUIRE(extent.all_finite == expected.all_finite);
  const AbsMax absmax = reduce_absmax(x), expected_absmax = reference::reduce_absmax(x);
  REQUIRE(reduce_same_bits(absmax.value, expected_absmax.value));
  REQUIRE(absmax.all_finite == expected_absmax.all_finite);
  REQUIRE(find_non_finite(x) == reference::find_non_finite(x));
}

TEST_CASE("reductions equal their oracles") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    for (Content content : {Content::finite, Content::with_specials}) {
      const std::vector<float> x = test_values(n + offset, content, static_cast<uint32_t>(n));
      check_reductions(std::span(x).subspan(offset));
    }
  });
}

TEST_CASE("a single extreme or non-finite value is found at any position") {
  for_each_arch([] {
    for (size_t at = 0; at < 70; ++at) {
      for (float v : {1000.0f, -1000.0f, kInf, -kInf, float_of(0x7FC00000), float_of(0xFF800001)}) {
        std::vector<float> x = test_values(70, Content::finite);
        for (float& other : x) other *= 1e-6f;
        x[at] = v;
        CAPTURE(at);
        check_reductions(x);
        CHECK(find_non_finite(x) == (std::isfinite(v) ? -1 : static_cast<int64_t>(at)));
        CHECK(reduce_absmax(x).all_finite == std::isfinite(v));
      }
    }
  });
}

TEST_CASE("edges of reductions") {
  for_each_arch([] {
    CHECK(reduce_extent({}).min == kInf);
    CHECK(reduce_extent({}).max == -kInf);
    CHECK(reduce_extent({}).all_finite);
    CHECK(reduce_same_bits(reduce_absmax({}).value, 0.0f));
    CHECK(find_non_finite({}) == -1);
    for (size_t n : {1, 33}) {
      const std::vector<float> nan(n, float_of(0x7FC00000)), zero(n, -0.0f), negative(n, -3.0f);
      CHECK(reduce_extent(nan).min == kInf);
      CHECK_FALSE(reduce_extent(nan).all_finite);
      CHECK(reduce_same_bits(reduce_absmax(nan).value, 0.0f));
      CHECK(reduce_same_bits(reduce_extent(zero).min, 0.0f));
      CHECK(reduce_same_bits(reduce_extent(zero).max, 0.0f));
      CHECK(reduce_extent(negative).max == -3.0f);
      CHECK(reduce_absmax(negative).value == 3.0f);
    }
  });
}

TEST_CASE("accumulate_extent equals its oracle") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    for (Content content : {Content::finite, Content::with_specials}) {
      const std::vector<float> x = test_values(n + offset, content, 1), start = test_values(n, Content::finite, 2);
      const std::span<const float> run = std::span(x).subspan(offset);
      Output<float> min(n, offset), max(n, offset), expected_min(n, offset), expected_max(n, offset);
      for (Output<float>* out : {&min, &max, &expected_min, &expected_max})
        std::copy(start.begin(), start.end(), out->data());
      const bool all_finite = accumulate_extent(run, min.data(), max.data());
      REQUIRE(all_finite == reference::accumulate_extent(run, expected_min.data(), expected_max.data()));
      REQUIRE(min == expected_min);
      REQUIRE(max == expected_max);
      REQUIRE(min.guards_are_whole());
      REQUIRE(max.guards_are_whole());
    }
  });
}

TEST_CASE("accumulate_extent keeps empty ranges empty and skips what is not finite") {
  for_each_arch([] {
    std::vector<float> min(40, kInf), max(40, -kInf), x(40, 2.0f);
    x[3] = kInf;
    x[36] = float_of(0x7FC00000);
    CHECK_FALSE(accumulate_extent(x, min.data(), max.data()));
    CHECK(min[3] == kInf);
    CHECK(max[3] == -kInf);
    CHECK(min[36] == kInf);
    CHECK(min[4] == 2.0f);
    CHECK(max[4] == 2.0f);
  });
}

}  // namespace
}  // namespace wasmquant::kernels
