// What transformers converts while it loads: single experts that become one parameter, layers that it joins or splits.
// Its loader of compressed-tensors decompresses the tensors of some conversions and of others not, so they decide what a
// file may hold.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/list.h"
#include "families/model_family.h"

namespace wasmquant::transformers {

using families::ModelFamily;

/// One row of conversions.def.
struct Conversion {
  enum class Kind : uint8_t {
    experts,     // single experts become one parameter
    joined,      // other tensors called weight become one, or are rearranged
    split,       // a tensor called weight becomes several
    rearranged,  // all tensors of a module are split or rearranged, those of a compressed weight, too
    parameter,   // a parameter that is no layer's weight becomes the weights of layers
    unreadable   // several tensors become several others, or one gets other values, which cannot be decompressed
  };
  Kind kind;
  std::string_view types;    // model types, separated by spaces
  std::string_view sources;  // ends of module names; experts: last components
  std::string_view targets;  // of the loaded model
};

/// The conversions of one family's loader.
class Conversions {
 public:
  /// The family must outlive this.
  explicit Conversions(const ModelFamily& family);

  const List<const Conversion*>& rows() const noexcept { return rows_; }
  bool has(Conversion::Kind kind) const noexcept;
  /// The one that changes the layer while it is loaded, by its name in the file; null if none does.
  const Conversion* find(std::string_view layer) const;
  /// The row for the parameter of experts called `fused` ("gate_up_proj"): its sources are the names of an expert's
  /// matrices. Null if the loader cannot read this family's experts one by one.
  const Conversion* merged_experts(std::string_view fused) const noexcept;
  /// The name of a matrix of single experts that a module of stacked ones calls `part`: gate_proj, up_proj and down_proj, or
  /// fc1 and fc2.
  std::string_view expert_matrix(std::string_view part) const noexcept;

 private:
  const ModelFamily& family_;
  List<const Conversion*> rows_;
};

/// Why transformers reads no single experts of a family whose files hold all in one tensor; empty if it does, or if the
/// family has no type, because such models may be for code that builds single layers.
std::string stacked_experts_limit(const ModelFamily& family);

/// Why transformers reads no file of the family whose experts are a tensor each; empty if it does.
std::string single_experts_limit(const ModelFamily& family);

}  // namespace wasmquant::transformers
