#include "algorithms/power.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "random_values.h"

using namespace wasmquant;

TEST_CASE("power agrees with the C library to 1e-12") {
  RandomValues random(5);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double base = std::ldexp(1.0 + std::fabs(random.next()), static_cast<int>(random.next() * 100));
    const double exponent = random.next() * 2;
    const double expected = std::pow(base, exponent);
    worst = std::max(worst, std::fabs(power(base, exponent) - expected) / expected);
  }
  CHECK(worst < 1e-13);
}

TEST_CASE("power of the smallest and the largest") {
  const double smallest = std::numeric_limits<double>::denorm_min(), largest = std::numeric_limits<double>::max();
  for (const double base : {smallest, 0x1p-1022, largest, std::nextafter(1.0, 0.0), std::nextafter(1.0, 2.0)})
    for (const double exponent : {0.5, -0.5, 0.9, 0.01}) {
      const double expected = std::pow(base, exponent);
      CHECK(std::fabs(power(base, exponent) - expected) <= 1e-12 * expected);
    }
  CHECK(power(largest, 2) == std::numeric_limits<double>::infinity());
  CHECK(power(smallest, 2) == 0);
  CHECK(power(2, -1020) == 0x1p-1020);
  CHECK(power(2, 1023) == 0x1p1023);
}

TEST_CASE("power where nothing has to be rounded") {
  CHECK(power(0, 0) == 1);
  CHECK(power(0, 0.5) == 0);
  CHECK(power(0, -1) == std::numeric_limits<double>::infinity());
  CHECK(power(1, 0.3) == 1);
  CHECK(power(4, 0.5) == 2);
  CHECK(power(7, 0) == 1);
}
