// Compares two models: pairs of weights as decoder tasks, and the error between two decoded tiles.
#include "pipeline/comparison/comparison.h"

#include <emscripten/bind.h>

#include <string>

#include "core/list.h"
#include "marshal.h"
#include "model_index.h"
#include "pipeline/comparison/comparison_json.h"
#include "tile_json.h"

namespace wasmquant::bindings {
namespace {

std::string comparison(const BoundModelIndex& reference, std::string reference_config, const BoundModelIndex& quantized,
                       std::string quantized_config, std::string options_text) {
  const auto options = json::parse(options_text);
  if (!options) return fail(options.error());
  const auto compared =
      compare_models(reference.index(), reference_config, quantized.index(), quantized_config, tile_bytes_of(*options));
  if (!compared) return fail(compared.error());
  static std::string work;
  work = packed_tasks(*compared);
  json::Value out = comparison_json(*compared);
  out.set("work", bytes_json(work));
  return ok(std::move(out));
}

std::string error_between(Address x, Address y, double count) {
  static List<double> numbers;
  const kernels::ErrorSums sums =
      kernels::error_between({pointer<const float>(x), static_cast<size_t>(count)}, pointer<const float>(y));
  return ok(writes_json({}, {&sums, 1}, numbers));
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(comparison) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("comparison", &comparison);
  function("errorBetween", &error_between);
}
