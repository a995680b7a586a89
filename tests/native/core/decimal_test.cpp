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
       {"0",
        "-0",
        "0.0",
        "-0e5",
        "1",
        "0.1",
        "-0.001",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0000000001",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e400",
        "1e999999999999",
        "4.9e-324",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.5e-324",
        "1e-324",
        "1e-999999999999",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.225073858507201136057409796709131975934819546351645648023426109724822222021076945516529523908135087914149158"
        "91303962110687008643869459464552765720740782062174337998814106326732925355228688137214901298112245145188984905"
        "7222307285255133155755015914"
        "39747639798341180199932396254828901710708185069063066665599493827577257201576306269066333264756530000924588831"
        "6433037779791869612049497390"
        "37782970490505108060994073026293712895895000358379996720725430436028407889577179615094551674824347103070260914"
        "4621572289880258182545180325"
        "70701886087211312807951223342628836862232150377566662250398253433597456888442390026549819838548794829220689472"
        "1689831099698365846814022854"
        "24333066033985088644580400103493397042756718644338377048603786162277173854562306587467901408672332763671875123"
        "4567890123456789012345678901"
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
    std::snprintf(buffer, sizeof buffer, "%.780Lg",
                  (static_cast<long double>(value) + static_cast<long double>(next)) / 2);
    if (std::isfinite(next)) check_same(buffer);
  }
}
