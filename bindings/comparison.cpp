// Compares two models: pairs of weights as decoder tasks, and the error between two decoded tiles.
#include "pipeline/comparison/comparison.h"

#include <emscripten/bind.h>

#include <optional>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "model_index.h"
#include "pipeline/comparison/comparison_json.h"
#include "tile_json.h"

namespace wasmquant::bindings {
namespace {

Result<Comparison> comparison_of(const BoundModelIndex& reference, const std::string& reference_config,
                                 const BoundModelIndex& quantized, const std::string& quantized_config,
                                 const std::string& options_text) {
  TRY(options, json::parse(options_text));
  return compare_models(reference.index(), reference_config, quantized.index(), quantized_config,
                        tile_bytes_of(options));
}

class BoundComparison : Counted {
 public:
  BoundComparison(const BoundModelIndex& reference, std::string reference_config, const BoundModelIndex& quantized,
                  std::string quantized_config, std::string options)
      : compared_(comparison_of(reference, reference_config, quantized, quantized_config, options)) {
    if (compared_) rows_.emplace(*compared_);
  }

  std::string summary() const {
    if (!compared_) return fail(compared_.error());
    json::Value out;
    out.set("pairs", static_cast<uint64_t>(compared_->pairs.size()));
    out.set("diagnostics", to_json(compared_->diagnostics));
    return ok(std::move(out));
  }

  std::string pairs(uint32_t first, uint32_t last) {
    return rows_ ? ok_text(rows_->rows(first, last)) : fail(compared_.error());
  }

  std::string pack(uint32_t first, uint32_t last) {
    if (!compared_) return fail(compared_.error());
    packed_ = packed_tasks(*compared_, first, last);
    return ok(bytes_json(packed_));
  }

 private:
  Result<Comparison> compared_;
  std::optional<ComparisonRows> rows_;
  std::string packed_;
};

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
  class_<BoundComparison>("Comparison")
      .constructor<const BoundModelIndex&, std::string, const BoundModelIndex&, std::string, std::string>()
      .function("summary", &BoundComparison::summary)
      .function("pairs", &BoundComparison::pairs)
      .function("pack", &BoundComparison::pack);
  function("errorBetween", &error_between);
}
