// A config is parsed once for everything that is asked of it.
#include "config/given_config.h"

#include <doctest/doctest.h>

using namespace wasmquant;

TEST_CASE("a given config is parsed once, for formats of either kind") {
  config::GivenConfig given(R"({"global_quant_config": {"weight": {"dtype": "int8"}}, "version": "1"})");
  const config::GivenConfig::Parsed& parsed = given.parsed();
  REQUIRE(bool(parsed.config));
  CHECK(parsed.config->config.global.weight.front().dtype == Dtype::int8);
  CHECK(parsed.problems.size() == parsed.config->diagnostics.size());
  CHECK(&given.parsed(true) == &parsed);
  CHECK(&given.parsed() == &parsed);
}

TEST_CASE("a name of both a preset and a recipe is either, as the format asks") {
  for (const char* text : {"mxfp4", " mxfp4\n", "\"mxfp4\""}) {
    CAPTURE(text);
    config::GivenConfig given(text);
    const auto &preset = given.parsed(), &recipe = given.parsed(true);
    REQUIRE(bool(preset.config));
    REQUIRE(bool(recipe.config));
    CHECK(preset.config->config.dialect == Dialect::quark);
    CHECK(recipe.config->config.dialect == Dialect::gguf);
    CHECK(&given.parsed() == &preset);
    CHECK(&given.parsed(true) == &recipe);
  }
  config::GivenConfig only_preset("int8");
  CHECK(&only_preset.parsed(true) == &only_preset.parsed());
}

TEST_CASE("a given config that cannot be used keeps its error and every problem") {
  config::GivenConfig given(R"({"global_quant_config": {"weight": {"dtype": "int99"}}, "exclud": []})");
  const config::GivenConfig::Parsed& parsed = given.parsed();
  REQUIRE_FALSE(bool(parsed.config));
  CHECK(parsed.config.error().code == ErrorCode::config_invalid);
  CHECK(parsed.problems.size() == 2);
  CHECK(config::GivenConfig("no-such-preset").parsed().problems.size() == 1);
}
