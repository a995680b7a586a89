// Experts that a checkpoint stores one by one, as the tensors in which GGUF has all of a layer.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/list.h"
#include "core/result.h"
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/tensors/converted_tensor.h"

namespace wasmquant::conversion {

/// Collects them in any order.
class ExpertStacks {
 public:
  void add(uint32_t source, TensorMatch& match) {
    found_.push_back({source, static_cast<uint32_t>(match.expert), std::move(match.name), match.half});
  }
  /// Adds a tensor [experts, ...] for each name. Errors: tensor-missing for a gap in their numbers, shape-mismatch.
  Status finish(std::span<const SourceTensor> tensors, List<ConvertedTensor>& out) const;

 private:
  struct Expert {
    uint32_t source, number;
    std::string name;
    HalfPrecision half;
  };
  List<Expert> found_;
};

}  // namespace wasmquant::conversion
