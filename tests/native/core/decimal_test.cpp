// Every rounding against the C library's strtod.
#include "core/decimal.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

using wasmquant::parse_decimal;

namespace {

void check_same(const std::string& text) {
  CAPTURE(text);
  CHECK(std::bit_cast<uint64_t>(parse_decimal(text)) == std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)));
}

}  // namespace

TEST_CASE("decimal text: borders, ties and extremes") {
  for (const char* text :
       {"0", "-0", "0.0", "-0e5", "1", "0.1", "-0.001", "1e22", "1e23", "9007199254740993", "9007199254740992.5", "9007199254740993.0000000001",
        "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1e309", "-1e400", "1e999999999999", "4.9e-324", "5e-324",
        "2.4703282292062327e-324", "2.4703282292062328e-324", "2.5e-324", "1e-324", "1e-999999999999", "2.2250738585072014e-308",
        "2.2250738585072011e-308", "2.225073858507201136057409796709131975934819546351645648023426109724822222021076945516529523908135087914149158"
        "913039621106870086438694594645527657207407820621743379988141063267329253552286881372149012981122451451889849057222307285255133155755015914"
        "397476397983411801999323962548289017107081850690630666655994938275772572015763062690663332647565300009245888316433037779791869612049497390"
        "377829704905051080609940730262937128958950003583799967207254304360284078895771796150945516748243471030702609144621572289880258182545180325"
        "707018860872113128079512233426288368622321503775666622503982534335974568884423900265498198385487948292206894721689831099698365846814022854"
        "243330660339850886445804001034933970427567186443383770486037861622771738545623065874679014086723327636718751234567890123456789012345678901"
        "e-308"}) {
    check_same(text);
  }
  check_same("0." + std::string(400, '0') + "1234567890123456789e100");
  check_same(std::string(900, '9') + ".5e-880");
  check_same("9007199254740992" + std::string(".5") + std::string(900, '0') + "1");
}

TEST_CASE("decimal text: random doubles, their halfway points and random digits") {
  std::mt19937_64 generator(5);
  char buffer[1200];
  for (int i = 0; i < 4000; ++i) {
    const double value = std::bit_cast<double>(generator());
    if (!std::isfinite(value)) continue;
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    check_same(buffer);
    std::snprintf(buffer, sizeof buffer, "%.*g", static_cast<int>(generator() % 30) + 1, value);
    check_same(buffer);
    const double next = std::nextafter(value, std::numeric_limits<double>::infinity());
    std::snprintf(buffer, sizeof buffer, "%.780Lg", (static_cast<long double>(value) + static_cast<long double>(next)) / 2);
    if (std::isfinite(next)) check_same(buffer);
  }
}
