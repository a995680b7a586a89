#include "numeric/sine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using wasmquant::sine_cosine_of;
using wasmquant::SineCosine;

TEST_CASE("sine and cosine against the C library") {
  std::mt19937 random(1);
  double worst = 0;
  for (const double range : {1.0, 10.0, 1000.0, 1048576.0}) {
    std::uniform_real_distribution<double> any(-range, range);
    for (int i = 0; i < 20000; ++i) {
      const double x = any(random);
      const SineCosine found = sine_cosine_of(x);
      worst = std::max({worst, std::fabs(found.sine - std::sin(x)), std::fabs(found.cosine - std::cos(x))});
    }
  }
  CHECK(worst < 1e-14);
  CHECK(sine_cosine_of(0).sine == 0);
  CHECK(sine_cosine_of(0).cosine == 1);
}
