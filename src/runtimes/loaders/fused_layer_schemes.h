// One scheme for all parts of a joined layer (runtimes/vllm/joined_layers.h), as vLLM requires for weights that it loads
// quantized. A plan is made, its layers are compared, and if parts differ where nobody asked for it, the plan is made
// again with what the parts have to share.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "core/diagnostic.h"

namespace wasmquant {

/// What the parts of joined layers have to share.
class FusedLayerSchemes {
 public:
  /// `may_leave`: layers may stay unquantized that the config does not name, as with presets.
  explicit FusedLayerSchemes(bool may_leave) noexcept : may_leave_(may_leave) {}

  /// Compares the layers of a plan. True if that gave parts more to share: plan again. It ends, for what they share only
  /// grows.
  bool update(const List<LayerPlan>& layers);

  /// Why the layer is left unquantized although its own weight fits; empty if it is not.
  std::string_view reason_to_leave(std::string_view layer) const;
  /// The length that a layer's group size has to divide: that of its axis, or the greatest divisor of those of all
  /// parts.
  uint64_t common_axis(std::string_view layer, uint64_t axis) const;
  /// About parts that differ because the config says so, in the layers of the last update.
  const std::optional<Diagnostic>& warning() const noexcept { return warning_; }

 private:
  struct Share {
    std::string module;  // name of the joined layer
    std::string reason;  // not empty: all parts are left
    uint64_t axis = 0;   // not 0: the length that group sizes have to divide
  };
  void compare(const List<LayerPlan>& layers, std::string_view module, const List<uint32_t>& parts);
  const Share* find(std::string_view layer) const;
  size_t place_of_module(std::string_view module) const;

  bool may_leave_, grew_ = false;
  List<Share> shares_;  // by module
  std::optional<Diagnostic> warning_;
};

}  // namespace wasmquant
