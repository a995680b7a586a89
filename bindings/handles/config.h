// A quantization config, parsed once for the plans and algorithms of a run. Contract: BoundConfig of
// web/lib/engine/module.ts.
#pragma once
#include "border/marshal.h"
#include "config/given_config.h"
#include "core/diagnostic.h"

namespace wasmquant::bindings {

class BoundConfig : Counted {
 public:
  /// `text`: JSON or a preset's name. What is wrong with it is the error of what is asked of it.
  explicit BoundConfig(const std::string& text) : given_(text) {}

  /// The algorithms that process a model block by block: [{"name", "needsInputs", ...}]. `diagnostics`: every problem.
  /// Errors: those of parse_text.
  Result<json::Value> calibrated_algorithms(List<Diagnostic>& diagnostics);
  config::GivenConfig& given() noexcept { return given_; }

 private:
  config::GivenConfig given_;
};

}  // namespace wasmquant::bindings
