#include "config/given_config.h"

#include <utility>

namespace wasmquant::config {

const GivenConfig::Parsed& GivenConfig::parsed(bool prefers_recipe) {
  std::optional<Parsed>& parsed = prefers_recipe && names_recipe(text_) ? as_recipe_ : as_config_;
  if (!parsed) {
    List<Diagnostic> problems;
    auto config = parse_for_format(text_, prefers_recipe, &problems);
    parsed.emplace(Parsed{std::move(config), std::move(problems)});
  }
  return *parsed;
}

}  // namespace wasmquant::config
