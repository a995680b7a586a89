// Tensors whose values GGUF has in another order, in several tensors or as another function: those that are more than a name,
// and no stack of experts.
#pragma once
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/tensors/converted_tensor.h"
#include "gguf_conversion/tensors/layout_sizes.h"

namespace wasmquant::conversion {

class ArrangedTensors {
 public:
  explicit ArrangedTensors(const LayoutSizes& sizes) noexcept : sizes_(sizes) {}

  /// Whether a tensor is one of them.
  static bool covers(const TensorMatch& match) noexcept {
    return !match.more.empty() || !match.groups.empty() || !match.factors.empty() || match.adds_axis ||
           match.kind >= TensorKind::decay;
  }
  /// Adds its targets. Errors: those of divide_rows(); shape-mismatch for another number of axes.
  Status add(uint32_t source, const SourceTensor& tensor, TensorMatch& match, List<ConvertedTensor>& out) const;

 private:
  const LayoutSizes sizes_;
};

}  // namespace wasmquant::conversion
