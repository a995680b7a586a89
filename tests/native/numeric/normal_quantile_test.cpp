#include "numeric/normal_quantile.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace wasmquant::testing {
namespace {

// torch.distributions.Normal(0, 1).icdf
TEST_CASE("normal quantiles are torch's") {
  CHECK(normal_quantile(0.95f) == 1.6448535919189453f);
  CHECK(normal_quantile(0.5f) == 0);
  CHECK(normal_quantile(0.25f) == -0.6744897365570068f);
  CHECK(normal_quantile(0.0f) == -std::numeric_limits<float>::infinity());
  CHECK(normal_quantile(1.0f) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(normal_quantile(1.5f)));
}

}  // namespace
}  // namespace wasmquant::testing
