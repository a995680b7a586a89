// Runners of a model's blocks: one for all layers of the same sizes.
#pragma once
#include <memory>

#include "core/list.h"
#include "model/block.h"

namespace wasmquant::model {

class BlockRunners {
 public:
  BlockRunners() = default;
  /// For sequences of at most `longest` tokens, as of BlockRunner.
  BlockRunners(const Architecture& architecture, size_t longest);

  BlockRunner& of(uint32_t layer) noexcept { return *runners_[numbers_[layer]]; }
  void set_cached(KeyValues* cached) noexcept {
    for (const auto& runner : runners_) runner->set_cached(cached);
  }

 private:
  List<std::unique_ptr<const Architecture>> kinds_;  // of theirs
  List<std::unique_ptr<BlockRunner>> runners_;
  List<uint8_t> numbers_;  // by layer
};

}  // namespace wasmquant::model
